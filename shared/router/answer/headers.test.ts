// Headers that an application sets are either sent, or reported as an error by name.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import test from 'ava';
import { Controller } from '../controller.ts';
import { HttpError, Redirect } from '../errors.ts';
import { defineFolder, type FolderSpec } from '../folder.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';

/** The answer of a method with this draft and value, and the errors that are reported. */
async function answerOf(act: (this: Controller) => unknown, after?: FolderSpec<object>['after']) {
  class Value extends Controller {
    GET() {
      return act.call(this);
    }
  }
  const folder = defineFolder(after === undefined ? {} : { after });
  const client = await createTestClient({ '': { Value }, _folder: { folder } });
  const { status, headers, text } = await client.send('GET', '/value');
  return { status, headers, text, report: String(client.reports[0]?.error ?? '') };
}

test('a content-type that a method sets chooses the representation', async (t) => {
  const page = await answerOf(function () {
    this.response.headers.set('Content-Type', 'text/html');
    return '<p>tea</p>';
  });
  t.deepEqual(
    [page.headers.get('content-type'), page.text],
    ['text/html;charset=UTF-8', '<p>tea</p>'],
  );
  const json = await answerOf(function () {
    this.response.headers.set('content-type', 'application/hal+json');
    return 'tea';
  });
  t.is(json.text, '"tea"');
  const bytes = await answerOf(function () {
    this.response.headers.set('content-type', 'image/png');
    return new Uint8Array([97]);
  });
  t.is(bytes.headers.get('content-type'), 'image/png');
});

test('two content types, a charset that the text does not have and events of another type are errors by name', async (t) => {
  const two = await answerOf(function () {
    this.response.headers.set('content-type', 'text/html');
    this.response.mediaType = 'text/plain';
    return 'tea';
  });
  t.is(two.status, 500);
  t.regex(two.report, /the header content-type is text\/html, and response.mediaType text\/plain/);
  const latin = await answerOf(function () {
    this.response.headers.set('content-type', 'text/plain; charset=iso-8859-1');
    return 'käse';
  });
  t.regex(latin.report, /text\/plain; charset=iso-8859-1 is not that of a text/);
  class Events extends Controller {
    static readonly GET = op({ produces: 'text/event-stream' });
    async *GET() {
      this.response.headers.set('content-type', 'text/plain');
      yield 1;
    }
  }
  const { send, reports } = await createTestClient({ '': { Events } });
  t.is((await send('GET', '/events')).status, 500);
  t.regex(String(reports[0]?.error), /the content type of events is text\/event-stream, not text/);
});

test('headers that a generator sets before its first event, or until a list ends, are sent', async (t) => {
  class Events extends Controller {
    static readonly GET = op({ produces: 'text/event-stream' });
    async *GET() {
      this.response.headers.set('x-a', 'b');
      this.response.status = 201;
      yield 1;
    }
    async *POST() {
      yield 1;
      this.response.headers.set('x-a', 'b');
      this.response.status = 201;
    }
  }
  const { send } = await createTestClient({ '': { Events } });
  for (const method of ['GET', 'POST']) {
    const { status, headers } = await send(method, '/events');
    t.deepEqual([status, headers.get('x-a')], [201, 'b']);
  }
});

test('a content-length that the body does not have is an error by name, on a stream it is sent', async (t) => {
  for (const value of [{ a: 1 }, 'tea', undefined]) {
    const wrong = await answerOf(function () {
      this.response.headers.set('content-length', '99');
      return value;
    });
    t.is(wrong.status, 500);
    t.regex(wrong.report, /the header content-length is 99, and the body has \d+ bytes/);
  }
  const none = await answerOf(() => new Response(null, { headers: { 'content-length': '5' } }));
  t.regex(none.report, /the header content-length is 5, and the body has 0 bytes/);
  t.is((await answerOf(() => new Response(null))).headers.get('content-length'), '0');
  const zero = { headers: { 'content-length': '0' } };
  for (const length of ['0', null]) {
    const status = length === null ? 204 : 201;
    const { headers } = await answerOf(() => new Response(null, { status, ...zero }));
    t.is(headers.get('content-length'), length);
  }
  const right = await answerOf(function () {
    this.response.headers.set('content-length', '5');
    return 'tea';
  });
  t.is(right.status, 200);
  const stream = (length: string) =>
    answerOf(function () {
      this.response.headers.set('content-length', length);
      return new ReadableStream({
        start(chunks) {
          chunks.enqueue('tea');
          if (length !== '2') chunks.close();
        },
        cancel: () => Promise.reject(new Error('an end that fails ends nothing else')),
      });
    });
  t.is((await stream('3')).headers.get('content-length'), '3');
  for (const length of ['2', '4'])
    await t.throwsAsync(stream(length), { message: /has not the \d bytes of its content-length/ });
});

test('an id that a method sets is sent; what the server sets, and what cannot be sent, is an error by name', async (t) => {
  const own = await answerOf(function () {
    this.response.headers.set('x-request-id', 'mine');
    return 1;
  });
  const twice = await answerOf(function () {
    for (const length of ['3', '3']) this.response.headers.append('content-length', length);
    return new Blob(['tea']).stream();
  });
  t.regex(twice.report, /the header "content-length" cannot be sent: it is set already/);
  t.is(own.headers.get('x-request-id'), 'mine');
  for (const [name, value] of [
    ['transfer-encoding', 'chunked'],
    ['trailer', 'x-sum'],
    ['content-length', 'ten'],
    ['x-title', '寿司'],
    ['content-disposition', 'attachment; filename="ü.txt"'],
    ['x title', 'a'],
    ['x-lines', 'a\r\nb'],
    ['', 'a\0b'],
  ] as const) {
    const report = new RegExp(`the header "${name}" cannot be sent`);
    t.regex(
      (
        await answerOf(function () {
          this.response.headers.set(name, value);
        })
      ).report,
      report,
    );
    t.regex(
      (
        await answerOf(
          () => 1,
          ({ headers }) => headers.append(name, value),
        )
      ).report,
      report,
    );
    const refused = await answerOf(() => {
      throw new HttpError(409, { headers: { [name]: value } });
    });
    t.is(refused.status, 500);
  }
  const passed = await answerOf(() => new Response('tea', { headers: { 'x-a': 'b\x01' } }));
  t.regex(passed.report, /the header "x-a" cannot be sent/);
});

test('a folder cannot announce a length that the body does not have', async (t) => {
  const { headers } = await answerOf(
    () => 'tea',
    (answer) => answer.headers.set('content-length', '99'),
  );
  t.is(headers.get('content-length'), '5');
});

test('an HttpError with a body has the type that its headers name; without a body that is an error', async (t) => {
  const page = await answerOf(() => {
    throw new HttpError(404, { headers: { 'Content-Type': 'text/html' }, body: '<p>no</p>' });
  });
  t.deepEqual(
    [page.status, page.headers.get('content-type'), page.text],
    [404, 'text/html', '<p>no</p>'],
  );
  const json = await answerOf(() => {
    throw new HttpError(409, { headers: { 'content-type': 'application/hal+json' }, body: 'no' });
  });
  t.is(json.text, '"no"');
  const without = await answerOf(() => {
    throw new HttpError(404, { headers: { 'content-type': 'text/html' } });
  });
  t.is(without.status, 500);
  t.regex(without.report, /content-type is allowed only with a body/);
});

test('locations are percent-encoded wherever they are set, and never twice', async (t) => {
  for (const [given, sent] of [
    ['/käse/寿司?q=a b', '/k%C3%A4se/%E5%AF%BF%E5%8F%B8?q=a%20b'],
    ['/a%20b/100%', '/a%20b/100%'],
    ['https://shop.example/a?x=[1]&y=|', 'https://shop.example/a?x=[1]&y=%7C'],
    ['/\ud800', '/%EF%BF%BD'],
    ['https://shop.example\\@evil.example/', 'https://shop.example/@evil.example/'],
    ['/\t/evil.example\\', '/%09/evil.example%5C'],
  ] as const) {
    const redirected = await answerOf(() => {
      throw new Redirect(given, 303);
    });
    t.deepEqual([redirected.status, redirected.headers.get('location')], [303, sent]);
    t.is(redirected.headers.get('content-length'), '0');
    const created = await answerOf(function () {
      this.response.headers.set('Location', given);
      this.response.headers.set('content-location', given);
      return 1;
    });
    t.is(created.headers.get('location'), sent);
    t.is(created.headers.get('content-location'), sent);
    const refused = await answerOf(() => {
      throw new HttpError(409, { headers: { location: given } });
    });
    t.is(refused.headers.get('location'), sent);
  }
});

test('the answer of another server is passed on without the headers of its connection and of its compression', async (t) => {
  const server = createServer((_request, response) => {
    const headers = { 'content-encoding': 'gzip', connection: 'keep-alive', 'x-a': 'b' };
    response.writeHead(200, headers).end(gzipSync('tea'));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const { headers, text } = await answerOf(() => fetch(`http://127.0.0.1:${port}/`));
  server.closeAllConnections();
  server.close();
  t.is(text, 'tea');
  t.is(headers.get('x-a'), 'b');
  for (const name of ['content-encoding', 'content-length', 'connection', 'transfer-encoding'])
    t.is(headers.get(name), null, name);
});
