import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import Type from 'typebox';
import { Controller } from './controller.ts';
import { op } from './op.ts';
import { createTestClient } from './test-client.ts';
import { upload } from './upload.ts';

class Photo extends Controller {
  static readonly POST = op({ body: Type.Object({ file: upload() }) }, async (fields) => ({
    name: fields.file.name,
    text: await fields.file.text(),
  }));
}

class Bytes extends Controller {
  static readonly PUT = op({ raw: true }, function (this: Bytes, _fields, bytes) {
    return [this.request.headers.get('content-type'), Buffer.from(bytes).toString()];
  });
}

class Form extends Controller {
  POST(fields: object) {
    return fields;
  }
}

test('forms, blobs, bytes and texts are sent as they are, with their type', async (t) => {
  const { send } = await createTestClient({ '': { Photo, Bytes, Form } });
  const form = new FormData();
  form.append('file', new File(['light'], 'sun.txt'));
  const photo = await send('POST', '/photo', { body: form });
  t.deepEqual(photo.json, { name: 'sun.txt', text: 'light' });

  const sentAs = async (body: unknown, headers = {}) =>
    (await send('PUT', '/bytes', { body, headers })).json;
  t.deepEqual(await sentAs(new Blob(['a'], { type: 'image/png' })), ['image/png', 'a']);
  t.deepEqual(await sentAs(new TextEncoder().encode('b')), [null, 'b']);
  t.deepEqual(await sentAs('c'), [null, 'c']);
  t.deepEqual(await sentAs('c', { 'content-type': 'text/csv' }), ['text/csv', 'c']);
  t.deepEqual(await sentAs(['d']), ['application/json', '["d"]']);

  const fields = await send('POST', '/form', { body: new URLSearchParams({ a: '1' }) });
  t.deepEqual(fields.json, { a: '1' });
});

test('a form that is left early fails nowhere', async (t) => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  t.teardown(() => process.off('unhandledRejection', note));
  const { send } = await createTestClient({ '': { Photo } }, { limits: { bodyBytes: 1024 } });
  const body = new FormData();
  body.append('file', new File([new Uint8Array(400 * 1024)], 'sun.png'));
  t.is((await send('POST', '/photo', { body })).status, 413);
  // Rejections are reported when no other work is left.
  await setImmediate();
  t.deepEqual(unhandled, []);
});
