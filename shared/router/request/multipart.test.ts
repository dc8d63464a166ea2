import test from 'ava';
import { BadRequest } from '../errors.ts';
import { defaultLimits } from '../limits.ts';
import { parseMultipart } from './multipart.ts';
import type { Keywords } from './target.ts';

/** A part is passed as bytes, one character each. */
function parse(disposition: string): Promise<Keywords> {
  const type = { essence: 'multipart/form-data', parameters: new Map([['boundary', 'b']]) };
  const head = `Content-Disposition: form-data; ${disposition}`;
  const body = Buffer.from(`--b\r\n${head}\r\n\r\n1\r\n--b--\r\n`, 'latin1');
  return parseMultipart(type, body, defaultLimits);
}

test('the names of fields and files are UTF-8', async (t) => {
  t.deepEqual({ ...(await parse('name="\xc3\xa9"')) }, { é: '1' });
  const { a } = await parse('name="a"; filename="\xc3\xa9"');
  t.is((a as File).name, 'é');
  t.deepEqual({ ...(await parse('name="a%22%5D"')) }, { 'a"%5D': '1' }, 'as browsers write it');
});

test('an input for a file that was not touched is no file, an empty file is one', async (t) => {
  const send = async (name: string, content: string) => {
    const type = { essence: 'multipart/form-data', parameters: new Map([['boundary', 'b']]) };
    const head = `Content-Disposition: form-data; name="a"; filename="${name}"`;
    const body = `--b\r\n${head}\r\nContent-Type: application/octet-stream\r\n\r\n${content}\r\n--b--\r\n`;
    return { ...(await parseMultipart(type, Buffer.from(body), defaultLimits)) };
  };
  t.deepEqual(await send('', ''), {});
  for (const [name, content] of [
    ['empty.txt', ''],
    ['', 'x'],
  ] as const) {
    const { a } = await send(name, content);
    t.deepEqual([(a as File).name, (a as File).size], [name, content.length]);
  }
});

test('a name that is not UTF-8 or holds a NUL is refused as such a value is', async (t) => {
  for (const [disposition, message] of [
    ['name="a\xff"', 'the body is not UTF-8'],
    ['name="a\xc3"', 'the body is not UTF-8'],
    ["name*=utf-8''a%ff", 'the body is not UTF-8'],
    ['name="a"; filename="b\xff"', 'the body is not UTF-8'],
    ['name="a\0"', 'the body holds a NUL character'],
    ["name*=utf-8''a%00", 'the body holds a NUL character'],
    ['name="a"; filename="b\0"', 'the body holds a NUL character'],
  ] as const) {
    await t.throwsAsync(parse(disposition), { instanceOf: BadRequest, message }, disposition);
  }
});
