// This control plane's code parses a large body, the router a small one: their results must not differ.
import test from 'ava';
import { Controller, createTestClient } from '../../../shared/router/index.ts';
import { parseLargeJson } from './large-json.ts';

class Default extends Controller {
  POST(fields: Record<string, unknown>) {
    return { names: Object.keys(fields), a: fields['a'] ?? null };
  }
}

const createClient = () =>
  createTestClient({ '': { Default } }, { largeJson: parseLargeJson, warn: () => {} });
/** Blanks that make a body large. */
const blanks = ' '.repeat(60_000);
const enlarge = (text: string) => `${blanks}${text.replace(/([[{,:])/, `$1${blanks}`)}${blanks}`;
const headers = { 'content-type': 'application/json' };

test('a large body is parsed like a small one, and is refused for the same reasons with the same messages', async (t) => {
  const { send } = await createClient();
  const statuses = new Set<number>();
  for (const text of [
    '{"a":[1,"\\u00e9",1e300,{"b":null}]}',
    '{"a":{"__proto__":1}}',
    '{"a":[{"\\u005f_proto__":1}]}',
    '{"a":{"constructor":{"prototype":{}}}}',
    `{"a":${'['.repeat(40)}`,
    '{"a":[9007199254740993]}',
    '{"a":1e999}',
    '{"a":"\\u0000"}',
    '{"a":"\u0000"}',
    '{"secret":',
    '{"a":1}}',
  ]) {
    const post = async (body: string) => {
      const { status, json } = await send('POST', '/', { body, headers });
      return { status, ...(json as object), requestId: '' };
    };
    const small = await post(text);
    t.deepEqual(await post(enlarge(text)), small, text);
    statuses.add(small.status);
  }
  t.deepEqual([...statuses], [200, 400]);
});

test('a large body is text, possibly after a byte order mark, with limited numbers of values and blanks', async (t) => {
  const { send } = await createClient();
  const post = async (...parts: (string | Uint8Array)[]) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
    const { status, json } = await send('POST', '/', { body, headers });
    return status === 200 ? json : (json as { detail: string }).detail;
  };
  const end = enlarge('{"a":1}');
  t.deepEqual(await post('\ufeff', end), { names: ['a'], a: 1 });
  t.is(await post(end, blanks, blanks), 'the body is not JSON');
  t.is(await post(blanks, blanks, blanks), 'the body is not JSON');
  t.is(await post(enlarge('{"a":"'), Buffer.from([0xff]), '"}'), 'the body is not UTF-8');
  t.is(await post(`[${'[],'.repeat(200_001)}[]]`), 'the body has more than 200000 values');
});
