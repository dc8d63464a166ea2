import test from 'ava';
import Type from 'typebox';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { Controller } from '../controller.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';
import { upload } from '../upload.ts';

const size = Type.Object({ size: Type.Integer() });
const fields = { file: upload(), size, sizes: Type.Array(size), text: Type.String() };

class Forms extends Controller {
  static readonly POST = op({
    body: Type.Partial(Type.Object(fields), { additionalProperties: true }),
  });
  POST(given: object) {
    const show = (value: unknown) =>
      value instanceof File ? `${value.type} ${value.name}, ${value.size} bytes` : value;
    return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, show(value)]));
  }
}

/** The parameters of a part's disposition, its type and its content, as bytes. */
testLines(test, new URL('multipart.txt', import.meta.url), async (given) => {
  const [disposition, type, content] = JSON.parse(given) as string[];
  const head = `Content-Disposition: form-data; ${disposition}${type && `\r\nContent-Type: ${type}`}`;
  const body = Buffer.from(`--b\r\n${head}\r\n\r\n${content}\r\n--b--\r\n`, 'latin1');
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  const { send } = await createTestClient({ '': { Forms } });
  const { json } = await send('POST', '/forms', { headers, body });
  const { detail, errors: [{ reason }] = [{}] } = Object(json);
  return detail === undefined ? JSON.stringify(json) : (reason ?? detail);
});
