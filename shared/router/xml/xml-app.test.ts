import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import Type from 'typebox';
import { Controller } from '../controller.ts';
import { HttpError, Stop } from '../errors.ts';
import { bearer } from '../guard.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';

const widget = Type.Object({
  name: Type.String({ maxLength: 8 }),
  size: Type.Integer({ default: 1 }),
  tags: Type.Array(Type.String(), { default: [] }),
  store: Type.Optional(
    Type.Object({
      shelf: Type.Integer(),
      boxes: Type.Optional(Type.Array(Type.Object({ id: Type.Integer() }))),
    }),
  ),
});

let calls = 0;

class Widgets extends Controller {
  static override readonly xml = true;
  static readonly POST = op({ body: widget, returns: { 200: widget } });
  static readonly PUT = op({ rest: Type.Unknown() });
  static readonly DELETE = op({ produces: 'image/png' });

  GET(): unknown {
    return { name: 'a', tags: ['x', 'y'] };
  }
  POST(fields: object): unknown {
    calls += 1;
    return fields;
  }
  PUT(_fields: object, ...rest: unknown[]) {
    return rest;
  }
  PATCH() {
    this.response.mediaType = 'application/vnd.widget+xml';
    return { name: 'a' };
  }
  DELETE() {
    return Buffer.from('bytes');
  }
}

class More extends Widgets {
  static override readonly guard = bearer(() => false);
}

class Texts extends Controller {
  static override readonly xml = true;

  GET() {
    return 'a & b';
  }
  *POST() {
    yield 1;
    yield 2;
  }
  PUT() {
    throw new Stop(201, { made: true });
  }
  PATCH() {
    this.response.mediaType = 'application/xml';
    return '<ours/>';
  }
  DELETE(): never {
    throw new HttpError(409, { detail: 'it is in use' });
  }
}

class Plain extends Controller {
  POST(fields: object) {
    return fields;
  }
}

const modules = { '': { Widgets, More, Texts, Plain } };
const declaration = '<?xml version="1.0" encoding="UTF-8"?>\n';

/** Prints whether the parser is loaded, before and after creating an application that allows XML. */
const program = `
  import { registerHooks } from 'node:module';
  import { Controller, createApp } from '${import.meta.resolve('../index.ts')}';
  const loaded = new Set();
  registerHooks({ resolve: (name, context, next) => (loaded.add(name), next(name, context)) });
  for (const xml of [false, true]) {
    const Plain = class extends Controller { static xml = xml; PUT() {} };
    await createApp({ loadModules: () => new Map([['', { Plain }]]), warn() {} });
    console.log(loaded.has('@rgrove/parse-xml'));
  }
`;

test('the parser of XML is loaded only where a controller allows it', async (t) => {
  const args = ['--input-type=module', '--eval', program];
  t.like(await promisify(execFile)(process.execPath, args), { stdout: 'false\ntrue\n' });
});

test('a body of XML has the types that are declared, whoever wrote it', async (t) => {
  const client = await createTestClient(modules);
  const send = (body: string, type = 'application/xml') =>
    client.send('POST', '/widgets', { headers: { 'content-type': type }, body });
  const full = { name: 'a,b', size: 4, tags: ['x,y'], store: { shelf: 2, boxes: [{ id: 1 }] } };
  const text =
    '<w name="a,b"><size>4</size><tags>x,y</tags><store shelf="2"><boxes><id>1</id></boxes></store></w>';
  for (const type of ['application/xml', 'text/xml; charset=utf-8', 'application/vnd.w+xml'])
    t.deepEqual((await send(text, type)).json, full);
  const { text: written } = await client.send('POST', '/widgets', {
    headers: { accept: 'application/xml' },
    body: full,
  });
  t.deepEqual((await send(written)).json, full);
  const { status, json } = await send('<w><name>too long a name</name><store/><size>x</size></w>');
  t.is(status, 400);
  t.deepEqual((json as { errors: unknown }).errors, [
    { in: 'body', name: 'name', reason: 'must not have more than 8 characters' },
    { in: 'body', name: 'size', reason: 'must be an integer' },
    { in: 'body', name: 'store', reason: 'must have required properties shelf' },
  ]);
  const nested = await send('<w><name>a</name><store><shelf>top</shelf></store></w>');
  t.regex(nested.text, /"name":"store\/shelf","reason":"must be an integer"/);
});

test('a root without fields is an argument as in JSON', async (t) => {
  const client = await createTestClient(modules);
  const send = async (body: string) => {
    const headers = { 'content-type': 'application/xml' };
    const { status, json } = await client.send('PUT', '/widgets', { headers, body });
    return status === 200 ? json : status;
  };
  t.deepEqual(await send('<a>text</a>'), ['text']);
  t.deepEqual(await send('<a/>'), []);
  t.is(await send('<a><b>1</b></a>'), 400, 'a field that is not declared');
});

test('XML that is not understood returns 400, 413 or 415 as JSON is', async (t) => {
  const client = await createTestClient(modules, { limits: { bodyBytes: 100 } });
  const send = async (target: string, body: string, headers: Record<string, string> = {}) => {
    const sent = { 'content-type': 'application/xml', ...headers };
    const {
      status,
      json,
      headers: answered,
    } = await client.send('POST', target, { headers: sent, body });
    t.is(answered.get('content-type'), 'application/problem+json');
    return `${status} ${(json as { detail?: string }).detail}`;
  };
  t.is(await send('/plain', '<a/>'), '415 a body must be json, form, multipart, text');
  t.is(
    await send('/widgets', '', { 'content-type': 'image/png' }),
    '400 the arguments are not valid',
  );
  t.is(
    await send('/widgets', 'a', { 'content-type': 'image/png' }),
    '415 a body must be json, form, multipart, text, xml',
  );
  const latin = { 'content-type': 'application/xml; charset=iso-8859-1' };
  t.is(
    await send('/widgets', '<a/>', latin),
    '415 a body must be json, form, multipart, text, xml',
  );
  t.is(await send('/widgets', '<a>'), '400 the body is not XML: see line 1, column 4');
  t.is(await send('/widgets', `<a>${'b'.repeat(100)}</a>`), '413 a body has at most 100 bytes');
  const gzip = { 'content-encoding': 'gzip' };
  t.is(await send('/widgets', '<a/>', gzip), '415 a compressed body is not understood');
  const broken = await client.app.dispatch({
    method: 'POST',
    target: '/widgets',
    headers: new Headers({ 'content-type': 'application/xml' }),
    body: (async function* () {
      yield Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0x3c, 0x2f, 0x61, 0x3e]);
    })(),
    remoteAddress: undefined,
  });
  t.is(broken.status, 400);
  t.regex(Buffer.from(broken.body as Uint8Array).toString(), /the body is not UTF-8/);
});

test('an answer is XML where the client prefers it, else JSON, and 406 where it wants neither', async (t) => {
  const client = await createTestClient(modules);
  for (const [accept, type] of [
    ['', 'json'],
    ['*/*', 'json'],
    ['application/*', 'json'],
    ['application/json; version=2', 'json'],
    ['application/json, application/xml', 'json'],
    ['application/xml;q=0.5, application/json;q=0.4', 'xml'],
    ['application/xml', 'xml'],
    ['text/xml', 'xml'],
    ['text/*', 'xml'],
    ['application/json;q=0, */*', 'xml'],
    ['application/xml, */*;q=0.1', 'xml'],
    ['application/vnd.widget+xml', 'xml'],
    ['not a type', 'json'],
    ['image/png', 406],
    ['application/xml;q=0', 406],
    ['*/*;q=0', 406],
  ] as const) {
    const { status, headers } = await client.send('GET', '/widgets', { headers: { accept } });
    t.is(headers.get('vary'), 'Accept');
    if (type === 406) t.is(status, 406, accept);
    else t.is(headers.get('content-type'), `application/${type};charset=UTF-8`, accept);
  }
  const before = calls;
  const body = { name: 'a' };
  const refused = await client.send('POST', '/widgets', { headers: { accept: 'image/png' }, body });
  t.is((refused.json as { detail: string }).detail, 'an answer is JSON or XML');
  t.is(calls, before, 'the method has not run');
  t.is(
    (await client.send('POST', '/more', { headers: { accept: 'image/png' }, body })).status,
    401,
  );
});

test('whatever would be JSON is XML, and the rest stays what it is', async (t) => {
  const client = await createTestClient(modules, { stringReturn: 'text/html' });
  const send = async (method: string, target: string, accept = 'application/xml') => {
    const { status, headers, text } = await client.send(method, target, { headers: { accept } });
    const type = headers.get('content-type')?.replace(';charset=UTF-8', '');
    return `${status} ${type} ${text.replace(declaration, '')}`;
  };
  t.is(await send('GET', '/texts'), '200 application/xml <value>a &amp; b</value>');
  t.is(
    await send('POST', '/texts'),
    '200 application/xml <value><item>1</item><item>2</item></value>',
  );
  t.is(await send('PUT', '/texts'), '201 application/xml <value><made>true</made></value>');
  t.is(await send('PATCH', '/texts', '*/*'), '200 application/xml <ours/>', 'a text of the method');
  t.regex(await send('DELETE', '/texts'), /^409 application\/problem\+json \{/);
  t.is(
    await send('PATCH', '/widgets', '*/*'),
    '200 application/vnd.widget+xml <value><name>a</name></value>',
  );
  t.is(await send('DELETE', '/widgets', 'image/png'), '200 image/png bytes');
  t.is(await send('POST', '/plain'), '200 application/json {}', 'where XML is not allowed');
});

test('the OpenAPI document names XML where it is allowed', async (t) => {
  const { app } = await createTestClient(modules);
  interface Operation {
    readonly requestBody?: { readonly content: object };
    readonly responses: Readonly<Record<string, { readonly content?: object }>>;
  }
  const { paths } = app.describe() as { paths: Record<string, Record<string, Operation>> };
  const post = paths['/widgets']?.['post'];
  t.deepEqual(Object.keys(post?.requestBody?.content ?? {}), [
    'application/json',
    'application/x-www-form-urlencoded',
    'application/xml',
  ]);
  const answers = ['application/json', 'application/xml'];
  t.deepEqual(Object.keys(post?.responses['200']?.content ?? {}), answers);
  const has406 = (path: string, verb: string) => '406' in (paths[path]?.[verb]?.responses ?? {});
  t.true(has406('/widgets', 'post'));
  t.false(has406('/plain', 'post'));
  t.false(has406('/widgets', 'delete'));
});
