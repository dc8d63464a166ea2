import { readFile } from 'node:fs/promises';
import test from 'ava';
import Type from 'typebox';
import { createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { bearer, limited } from '../guard.ts';
import { op } from '../op.ts';
import { named, optional, part } from '../path-part.ts';
import { createTestClient } from '../test-client.ts';
import { upload } from '../upload.ts';

test('the document of the sample is the one that is kept', async (t) => {
  const controllerPrefix = new URL('../sample', import.meta.url).pathname;
  const info = { title: 'Sample', version: '1.0.0' };
  const app = await createApp({ controllerPrefix, info });
  const stored = await readFile(new URL('../sample/openapi.json', import.meta.url), 'utf8');
  t.deepEqual(JSON.parse(JSON.stringify(app.describe())), JSON.parse(stored));
});

class Files extends Controller {
  static override readonly guard = bearer(() => true);
  static readonly GET = op({
    path: [part('kind', Type.String()), optional(named('name'))],
    rest: Type.Integer(),
  });
  static readonly PUT = op({ path: [Type.String()], body: Type.Object({ file: upload() }) });
  static readonly ANY = op({ public: true });
  GET() {}
  PUT() {}
  ANY() {}
}

class Openapi_json extends Controller {
  GET() {
    return this.describe();
  }
}

type Operation = Record<string, unknown> & { operationId: string; parameters: object[] };

test('a raw body is described by the types that are declared for it, else as any, and may be empty', async (t) => {
  class Hooks extends Controller {
    static readonly POST = op({ raw: true });
    static readonly PUT = op({ raw: true, otherBodies: { 'application/json': Type.Object({}) } });
    POST() {}
    PUT() {}
  }
  const { app } = await createTestClient({ '': { Hooks } });
  const { paths } = app.describe() as unknown as {
    paths: Record<string, Record<string, Operation>>;
  };
  const { post, put } = paths['/hooks'] as Record<'post' | 'put', Operation>;
  t.deepEqual(post['requestBody'], { required: false, content: { '*/*': { schema: {} } } });
  t.deepEqual(Object.keys((put['requestBody'] as { content: object }).content), [
    'application/json',
  ]);
  const statuses = Object.keys(post['responses'] as object);
  t.deepEqual([statuses.includes('413'), statuses.includes('415')], [true, false]);
});

test('conditions and a limited method have their statuses, and a model that names itself is there once', async (t) => {
  const size = Type.Integer({ default: 1 });
  const node = Type.Object({ size, next: Type.Optional(Type.Ref('Node')) });
  class Notes extends Controller {
    static readonly GET = op({ etag: true, guard: limited(() => true) }, () => 'a');
    static readonly PUT = op({ etag: true }, () => 'a');
    static readonly PATCH = op({ body: Type.Cyclic({ Node: node }, 'Node') }, () => 'a');
  }
  const { app } = await createTestClient({ '': { Notes } });
  const { paths, components } = app.describe() as unknown as {
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: { Node: object } };
  };
  t.deepEqual(Object.keys(components.schemas), ['Problem', 'Node']);
  t.false(JSON.stringify(components.schemas.Node).includes('required'), 'it has a default');
  const statusesOf = (verb: string) => Object.keys(paths['/notes']?.[verb]?.['responses'] ?? {});
  t.deepEqual(statusesOf('get'), ['200', '304', '400', '404', '405', '412', '429', '500']);
  t.deepEqual(statusesOf('put'), ['200', '400', '404', '405', '412', '500']);
});

test('events are described without a schema by their type', async (t) => {
  class News extends Controller {
    static readonly GET = op({ produces: 'text/event-stream' });
    async *GET() {}
  }
  const { app } = await createTestClient({ '': { News } });
  const { paths } = app.describe() as unknown as {
    paths: Record<string, Record<string, Operation>>;
  };
  const { get } = paths['/news'] as Record<'get', Operation>;
  const { 200: answer } = get['responses'] as Record<number, object>;
  t.deepEqual(answer, { description: 'OK', content: { 'text/event-stream': {} } });
});

test('optional, shared, rest and file parameters are described, and ANY stands for what is missing', async (t) => {
  const client = await createTestClient({ '': { Files, Openapi_json } });
  const { json } = await client.send('GET', '/openapi.json');
  const { paths } = json as { paths: Record<string, Record<string, Operation>> };
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, { operationId }]) => `${verb} ${path} ${operationId}`),
  );
  t.deepEqual(operations.sort(), [
    'delete /files deleteFiles',
    'get /files/{kind} getFilesWithKind',
    'get /files/{kind}/{name} getFilesWithKindName',
    'get /files/{kind}/{name}/{rest} getFilesWithKindNameRest',
    'get /openapi.json getOpenapiJson',
    'patch /files patchFiles',
    'post /files postFiles',
    'put /files/{kind} putFilesWithKind',
  ]);
  t.deepEqual(paths['/files/{kind}']?.['get']?.parameters, [
    { name: 'kind', in: 'path', required: true, schema: { type: 'string' } },
    { name: 'name', in: 'query', required: false, schema: { type: 'string' } },
  ]);
  const put = paths['/files/{kind}']?.['put'];
  t.deepEqual(put?.['security'], [{ bearer: [] }]);
  t.deepEqual(Object.keys(put?.['responses'] as object), [
    '200',
    '400',
    '401',
    '403',
    '404',
    '405',
    '413',
    '415',
    '500',
  ]);
  t.deepEqual(put?.['requestBody'], {
    required: true,
    content: {
      'multipart/form-data': {
        schema: {
          type: 'object',
          properties: { file: { contentMediaType: 'application/octet-stream' } },
          required: ['file'],
          additionalProperties: false,
        },
      },
    },
  });
});
