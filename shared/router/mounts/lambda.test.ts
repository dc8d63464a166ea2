import { Readable } from 'node:stream';
import test from 'ava';
import Type from 'typebox';
import { createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { readCookie, setCookie } from '../cookies.ts';
import { op } from '../op.ts';
import { createLambda, type LambdaEvent } from './lambda.ts';

class Notes extends Controller {
  static readonly GET = op({
    path: [Type.Integer()],
    query: Type.Object({ limit: Type.Integer() }),
  });
  GET({ limit }: { limit: number }, id: number) {
    setCookie(this.response.headers, 'a', '1');
    setCookie(this.response.headers, 'b', '2');
    const { headers, remoteAddress } = this.request;
    return { id, limit, session: readCookie(headers, 'session') ?? null, from: remoteAddress };
  }

  static readonly POST = op({ body: Type.Object({ text: Type.String() }) });
  POST({ text }: { text: string }) {
    return { text };
  }

  PUT() {
    return Readable.from([Buffer.from([0xff]), Buffer.from([0xfe])]);
  }

  DELETE() {}

  async *failing() {
    yield 'a';
    throw new Error('the disk is gone');
  }
  PATCH() {
    return Readable.from(this.failing());
  }
}

const handling = createApp({ loadModules: () => new Map([['', { Notes }]]) }).then(createLambda);
const handler = async (...of: Parameters<ReturnType<typeof createLambda>>) =>
  (await handling)(...of);

/** As a function URL sends it. */
const event = (method: string, path: string, more: Partial<LambdaEvent> = {}): LambdaEvent => {
  const [rawPath = '', rawQueryString = ''] = path.split('?');
  const requestContext = { http: { method, sourceIp: '192.0.2.1' } };
  return {
    rawPath,
    rawQueryString,
    headers: { host: 'a', 'x-name': '寿司' },
    requestContext,
    ...more,
  };
};

test('an event reaches its method with path, query, cookies and the address of the caller', async (t) => {
  const answer = await handler(
    event('GET', '/notes/7?limit=5', { cookies: ['theme=dark', 'session=s%201'] }),
  );
  t.is(answer.statusCode, 200);
  t.deepEqual(JSON.parse(answer.body), { id: 7, limit: 5, session: 's 1', from: '192.0.2.1' });
  t.is(answer.headers['content-type'], 'application/json;charset=UTF-8');
  t.deepEqual(
    answer.cookies.map((cookie) => cookie.split(';')[0]),
    ['a=1', 'b=2'],
  );
  t.false('set-cookie' in answer.headers);
});

test('a path that an HTTP API has decoded is one again, without the name of its stage', async (t) => {
  class Texts extends Controller {
    static readonly GET = op({ path: [Type.String()] }, (_fields, text) => text);
  }
  const app = await createApp({ loadModules: () => new Map([['', { Texts }]]) });
  const read = async (rawPath: string, stage: string) => {
    const requestContext = { stage, http: { method: 'GET', sourceIp: '192.0.2.1' } };
    const answer = await createLambda(app)(event('GET', '', { rawPath, requestContext }));
    return answer.statusCode === 200 ? JSON.parse(answer.body) : answer.statusCode;
  };
  t.is(await read('/texts/grün und 100%', '$default'), 'grün und 100%');
  t.is(await read('/texts/why?#', '$default'), 'why?#');
  t.is(await read('/texts/gr%C3%BCn', '$default'), 'grün');
  t.is(await read('/prod/texts/a', 'prod'), 'a');
  t.is(await read('/texts/a', 'prod'), 'a');
  t.is(await read('/product/a', 'prod'), 404);
});

test('a body is read as a text or as base64, and a wrong one refused as elsewhere', async (t) => {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ text: 'grüß' });
  const plain = await handler(event('POST', '/notes', { headers, body }));
  t.deepEqual(JSON.parse(plain.body), { text: 'grüß' });
  const encoded = Buffer.from(body).toString('base64');
  const same = await handler(
    event('POST', '/notes', { headers, body: encoded, isBase64Encoded: true }),
  );
  t.deepEqual(JSON.parse(same.body), { text: 'grüß' });
  t.is((await handler(event('POST', '/notes', { headers, body: '{' }))).statusCode, 400);
  t.is((await handler(event('GET', '/%2e%2e/none', { body: null }))).statusCode, 404);
});

test('bytes and streams are base64, and an answer without a body has none', async (t) => {
  const bytes = await handler(event('PUT', '/notes'));
  t.deepEqual([bytes.isBase64Encoded, bytes.body], [true, '//4=']);
  const none = await handler(event('DELETE', '/notes'));
  t.deepEqual([none.statusCode, none.isBase64Encoded, none.body], [204, false, '']);
});

test('a stream that fails is a 500 as a whole', async (t) => {
  const app = await createApp({
    loadModules: () => new Map([['', { Notes }]]),
    reportError: ({ error }) => t.regex(String(error), /the disk is gone/),
  });
  const answer = await createLambda(app)(event('PATCH', '/notes'));
  t.is(answer.statusCode, 500);
  t.is(JSON.parse(answer.body).requestId, answer.headers['x-request-id']);
});
