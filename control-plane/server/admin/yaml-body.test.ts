import test from 'ava';
import type { RequestLike } from '../../../shared/router/index.ts';
import { toJsonRequest } from './yaml-body.ts';

function request(type: string, ...chunks: readonly (string | Uint8Array)[]): RequestLike {
  async function* body() {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  const headers = new Headers({ 'content-type': type, 'content-length': '7' });
  return { method: 'POST', target: '/', headers, body: body(), remoteAddress: undefined };
}

async function textOf({ body = nothing() }: RequestLike): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

async function* nothing(): AsyncIterable<Uint8Array> {}

for (const type of ['application/yaml', 'text/yaml; charset=utf-8', 'Application/X-YAML']) {
  test(`${type} becomes JSON`, async (t) => {
    const turned = toJsonRequest(
      request(type, 'domain: "', new Uint8Array([0xc3]), new Uint8Array([0xa4]), '"\n'),
      100,
    );
    t.is(turned.headers.get('content-type'), 'application/json');
    t.is(turned.headers.get('content-length'), null);
    t.deepEqual(JSON.parse(await textOf(turned)), { yaml: 'domain: "ä"\n' });
  });
}

for (const type of ['application/json', 'text/plain', 'application/yamlish', '']) {
  test(`'${type}' is unchanged`, (t) => {
    const given = request(type, 'x');
    t.is(toJsonRequest(given, 100), given);
  });
}

test('a text is passed on as it arrives, so that the reader may stop', async (t) => {
  let sent = 0;
  async function* endless() {
    for (; ; sent += 1) yield Buffer.alloc(1000, '"');
  }
  const given = { ...request('application/yaml'), body: endless() };
  let read = 0;
  for await (const piece of toJsonRequest(given, 1e9).body ?? nothing()) {
    read += piece.byteLength;
    if (read > 10_000) break;
  }
  t.true(sent < 10);
});

test('a text that is too large, or not UTF-8, is refused', async (t) => {
  const large = toJsonRequest(request('application/yaml', 'x'.repeat(60), 'x'.repeat(41)), 100);
  await t.throwsAsync(textOf(large), { message: 'a YAML body has at most 100 bytes' });
  const odd = toJsonRequest(request('application/yaml', new Uint8Array([0xff])), 100);
  await t.throwsAsync(textOf(odd), { message: 'the body is not UTF-8 text' });
});
