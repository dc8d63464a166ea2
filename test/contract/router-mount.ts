// What every mount of the convention router does on real connections, beyond the routing cases: the suite is called
// once for each kind of server, with the list of what that server cannot do.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import test from 'ava';
import Type from 'typebox';
import { type App, createApp } from '../../shared/router/app.ts';
import { Controller } from '../../shared/router/controller.ts';
import { bearer } from '../../shared/router/guard.ts';
import { op } from '../../shared/router/op.ts';

export interface MountedServer {
  readonly port: number;
  stop(): Promise<void>;
}

export interface MountUnderTest {
  readonly name: string;
  start(app: App): Promise<MountedServer>;
  /** Behaviours that this kind of server decides itself, with the reason. */
  readonly skip: Readonly<Partial<Record<MountBehaviour, string>>>;
}

export type MountBehaviour = 'unknown-method' | 'unreadable-request' | 'peer-address' | 'get-body';

const bodyBytes = 64 * 1024;

class Echo extends Controller {
  static readonly GET = op({ rest: Type.String(), query: openFields() });
  static readonly POST = op({ rest: Type.Unknown(), body: openFields() });

  GET(fields: object, ...rest: string[]) {
    return { fields, rest, peer: this.request.remoteAddress };
  }

  POST(fields: object, ...rest: unknown[]) {
    return { fields, rest };
  }
}

class Markup extends Controller {
  static override readonly xml = true;

  POST(fields: object) {
    return fields;
  }
}

class Stream extends Controller {
  static readonly GET = op({ query: Type.Object({ endless: Type.Boolean({ default: false }) }) });

  GET({ endless }: { endless: boolean }) {
    return new ReadableStream({
      pull(controller) {
        controller.enqueue(Buffer.alloc(1024, 'x'));
        pulled += 1;
        if (!endless && pulled >= 8) controller.close();
      },
      cancel() {
        cancelled.resolve();
      },
      start() {
        pulled = 0;
      },
    });
  }
}

let pulled = 0;
let cancelled = Promise.withResolvers<void>();

let waiting = Promise.withResolvers<void>();
let notified = Promise.withResolvers<void>();

class Waiting extends Controller {
  async GET() {
    const { signal } = this.request;
    waiting.resolve();
    await once(signal, 'abort');
    notified.resolve();
  }
}

class Guarded extends Controller {
  static override readonly guard = bearer(() => false);
  POST() {}
}

class Cookies extends Controller {
  GET() {
    this.response.headers.append('set-cookie', 'a=1');
    this.response.headers.append('set-cookie', 'b=2');
    return 'x'.repeat(10);
  }
}

class Whatever extends Controller {
  ANY() {
    return [...this.request.headers];
  }
}

const hookKey = 'key';
const hookBytes = 16;

class Hook extends Controller {
  static readonly POST = op(
    { raw: true, query: Type.Object({ from: Type.String() }), limits: { bodyBytes: hookBytes } },
    function (this: Hook, { from }, body) {
      return { from, signature: sign(body), bytes: body.length };
    },
  );
}

class Import extends Controller {
  static readonly POST = op(
    { raw: true, limits: { bodyBytes: 2 * bodyBytes } },
    (_fields, body) => body.length,
  );
}

function sign(body: Uint8Array): string {
  return createHmac('sha256', hookKey).update(body).digest('hex');
}

/** Registers the suite's tests. */
export function testRouterMount({ name, start, skip }: MountUnderTest): void {
  const behaviour = (
    title: string,
    run: (mounted: MountedServer) => Promise<unknown>,
    expected: unknown,
    bodyTimeoutMs = 30_000,
  ) => {
    test.serial(`${name}: ${title}`, async (t) => {
      const app = await createApp({
        loadModules: () =>
          new Map([
            ['', { Echo, Markup, Stream, Waiting, Guarded, Cookies, Whatever, Hook, Import }],
          ]),
        limits: { bodyBytes, bodyTimeoutMs },
        reportError: () => {},
        // Most of them have no guard.
        warn: () => {},
      });
      const mounted = await start(app);
      try {
        t.deepEqual(await run(mounted), expected);
      } finally {
        await mounted.stop();
      }
    });
  };

  behaviour(
    'a body and an answer are XML where the controller allows it',
    async ({ port }) => {
      const headers = { 'content-type': 'application/xml', accept: 'application/xml' };
      const sent = httpRequest({ port, path: '/markup', method: 'POST', headers });
      sent.end('<any><a>1</a></any>');
      return (await readResponse(sent)).text.split('\n')[1];
    },
    '<value><a>1</a></value>',
  );

  behaviour(
    'a body in chunks is read whole',
    async ({ port }) => {
      const sent = httpRequest({ port, path: '/echo', method: 'POST', headers: json });
      sent.write('{"a":');
      sent.end('1}');
      return JSON.parse((await readResponse(sent)).text);
    },
    { fields: { a: 1 }, rest: [] },
  );

  behaviour(
    'a body over the limit returns 413, announced or not, and the answer arrives',
    async ({ port }) => {
      const statuses: number[] = [];
      for (const headers of [json, { ...json, 'content-length': bodyBytes * 8 }]) {
        const sent = httpRequest({ port, path: '/echo', method: 'POST', headers });
        sent.on('error', () => {});
        sent.write(Buffer.alloc(bodyBytes * 2, ' '));
        statuses.push((await readResponse(sent)).status);
        sent.destroy();
      }
      return statuses;
    },
    [413, 413],
  );

  behaviour(
    'a body that stalls returns 408',
    async ({ port }) => {
      const sent = httpRequest({
        port,
        path: '/echo',
        method: 'POST',
        headers: { ...json, 'content-length': 100 },
      });
      sent.on('error', () => {});
      sent.write('{');
      const { status } = await readResponse(sent);
      sent.destroy();
      return status;
    },
    408,
    300,
  );

  behaviour(
    'a connection serves again after an answer that did not wait for the body',
    async ({ port }) => {
      const socket = connect(port, '127.0.0.1');
      socket.write('POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n');
      const first = await readHead(socket);
      socket.write('bodyGET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      const second = await readHead(socket);
      socket.destroy();
      return [first, second];
    },
    ['HTTP/1.1 404', 'HTTP/1.1 200'],
  );

  behaviour(
    'requests that are sent at once, with and without bodies, are answered one after the other',
    async ({ port }) => {
      const form = 'Content-Type: application/x-www-form-urlencoded\r\n';
      const socket = connect(port, '127.0.0.1');
      socket.write(
        'GET /echo/1 HTTP/1.1\r\nHost: a\r\n\r\n' +
          `POST /echo HTTP/1.1\r\nHost: a\r\n${form}Content-Length: 3\r\n\r\nb=2` +
          `POST /echo HTTP/1.1\r\nHost: a\r\n${form}Content-Length: 0\r\n\r\n` +
          'GET /echo/3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      );
      let received = '';
      for await (const chunk of socket) received += chunk;
      return [...received.matchAll(/"fields":(\{.*?\}),"rest":(\[.*?\])/g)].map((found) =>
        found.slice(1),
      );
    },
    [
      ['{}', '["1"]'],
      ['{"b":"2"}', '[]'],
      ['{}', '[]'],
      ['{}', '["3"]'],
    ],
  );

  behaviour(
    'HEAD has the headers of GET and no body',
    async ({ port }) => {
      const sent = httpRequest({ port, path: '/cookies', method: 'HEAD' }).end();
      const { headers, text, status } = await readResponse(sent);
      return [status, headers['content-length'], headers['content-type'], text];
    },
    [200, '12', 'application/json;charset=UTF-8', ''],
  );

  behaviour(
    'repeated Set-Cookie headers stay apart, and the common headers are there',
    async ({ port }) => {
      const sent = httpRequest({ port, path: '/cookies', headers: { 'x-request-id': 'r-1' } });
      const { headers } = await readResponse(sent.end());
      return [
        headers['set-cookie'],
        headers['x-content-type-options'],
        headers['cache-control'],
        headers['x-request-id'],
      ];
    },
    [['a=1', 'b=2'], 'nosniff', 'no-store', 'r-1'],
  );

  behaviour(
    'a stream is sent to its end',
    async ({ port }) => {
      const { text, headers } = await readResponse(httpRequest({ port, path: '/stream' }).end());
      return [text.length, headers['content-type']];
    },
    [8 * 1024, 'application/octet-stream'],
  );

  behaviour(
    'a stream is cancelled when its reader disconnects',
    async ({ port }) => {
      cancelled = Promise.withResolvers();
      const sent = httpRequest({ port, path: '/stream?endless=1' }).end();
      sent.on('error', () => {});
      const [response] = await once(sent, 'response');
      await once(response, 'data');
      sent.destroy();
      await withDeadline(cancelled.promise);
      return 'cancelled';
    },
    'cancelled',
  );

  behaviour(
    'a running method is notified when its client disconnects',
    async ({ port }) => {
      waiting = Promise.withResolvers();
      notified = Promise.withResolvers();
      const sent = httpRequest({ port, path: '/waiting' }).end();
      sent.on('error', () => {});
      await withDeadline(waiting.promise);
      sent.destroy();
      await withDeadline(notified.promise);
      return 'told';
    },
    'told',
  );

  behaviour(
    'an encoded slash stays inside its part, and slashes at the front name no host',
    async ({ port }) => {
      const { text } = await readResponse(httpRequest({ port, path: '//echo/a%2Fb' }).end());
      return JSON.parse(text).rest;
    },
    ['a/b'],
  );

  behaviour(
    'broken percent encoding returns 400 in the shape of every problem',
    async ({ port }) => {
      const { status, text, headers } = await readResponse(
        httpRequest({ port, path: '/echo/%zz' }).end(),
      );
      const { title, requestId } = JSON.parse(text);
      const { 'x-content-type-options': sniffing, 'cache-control': caching } = headers;
      return [status, title, headers['x-request-id'] === requestId, sniffing, caching];
    },
    [400, 'Bad Request', true, 'nosniff', 'no-store'],
  );

  behaviour(
    'a content type that cannot be read matters where there is a body for the method alone',
    async ({ port }) => {
      const ask = async (method: string, path: string, body: string, type: string | undefined) => {
        const headers = { 'content-length': body.length, ...(type && { 'content-type': type }) };
        return (await readResponse(httpRequest({ port, path, method, headers }).end(body))).status;
      };
      return [
        await ask('POST', '/echo', '', 'json'),
        await ask('POST', '/echo', '{}', 'json'),
        await ask('POST', '/echo', '{}', undefined),
        await ask('POST', '/nowhere', '{}', 'json'),
        await ask('POST', '/guarded', '{}', 'json'),
        await ask('QUERY', '/echo', '', undefined),
      ];
    },
    [200, 415, 415, 404, 401, 501],
  );

  behaviour(
    'a raw body arrives byte for byte, whatever its type, so that its signature can be checked',
    async ({ port }) => {
      const wrong: string[] = [];
      for (const type of [
        'application/json',
        'application/x-www-form-urlencoded',
        'text/odd; charset',
        '',
      ]) {
        for (const body of [' {"a": 1}\n', 'a=1&a=%zz', '\xff\0', '']) {
          const bytes = Buffer.from(body, 'latin1');
          const headers = { 'content-length': bytes.length, ...(type && { 'content-type': type }) };
          const path = '/hook?from=a';
          const sent = httpRequest({ port, path, method: 'POST', headers }).end(bytes);
          const { text } = await readResponse(sent);
          const expected = { from: 'a', signature: sign(bytes), bytes: bytes.length };
          if (text !== JSON.stringify(expected)) wrong.push(`${type} ${body}: ${text}`);
        }
      }
      return wrong;
    },
    [],
  );

  behaviour(
    'a raw body over the limit of its method returns 413: before a byte of it has come where its length is announced',
    async ({ port }) => {
      const ask = async (headers: Record<string, string | number>, body: string) => {
        const sent = httpRequest({ port, path: '/hook?from=a', method: 'POST', headers });
        sent.on('error', () => {});
        if (body === '') sent.flushHeaders();
        else sent.write(body);
        const { status } = await readResponse(sent);
        sent.destroy();
        return status;
      };
      return [
        await ask({ 'content-length': hookBytes + 1 }, ''),
        await ask({ 'content-length': hookBytes }, 'x'.repeat(hookBytes)),
        await ask({ 'transfer-encoding': 'chunked' }, 'x'.repeat(hookBytes + 1)),
      ];
    },
    [413, 200, 413],
  );

  behaviour(
    'a method may take a larger body than the application, announced or not, up to its own limit',
    async ({ port }) => {
      const answers: string[] = [];
      for (const bytes of [2 * bodyBytes, 2 * bodyBytes + 1]) {
        for (const headers of [{ 'content-length': bytes }, { 'transfer-encoding': 'chunked' }]) {
          const sent = httpRequest({ port, path: '/import', method: 'POST', headers });
          sent.on('error', () => {});
          sent.end(Buffer.alloc(bytes, 'x'));
          const { status, text } = await readResponse(sent);
          answers.push(status === 200 ? text : String(status));
          sent.destroy();
        }
      }
      return answers;
    },
    [String(2 * bodyBytes), String(2 * bodyBytes), '413', '413'],
  );

  behaviour(
    'TRACE is refused where ANY answers too, and nothing of the request is sent back',
    async ({ port }) => {
      const answers: unknown[] = [];
      for (const path of ['/echo', '/whatever']) {
        const sent = httpRequest({ port, path, method: 'TRACE', headers: { cookie: 'id=s3cret' } });
        const { status, headers, text } = await readResponse(sent.end());
        answers.push([status, headers.allow, text.includes('s3cret')]);
      }
      return answers;
    },
    [
      [405, 'GET, HEAD, OPTIONS, POST', false],
      [405, 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT', false],
    ],
  );

  if (!('peer-address' in skip)) {
    behaviour(
      "the peer's address is the socket's, whatever a header claims",
      async ({ port }) => {
        const headers = { 'x-forwarded-for': '10.0.0.1', forwarded: 'for=10.0.0.1' };
        const sent = httpRequest({ port, host: '127.0.0.1', path: '/echo', headers });
        return JSON.parse((await readResponse(sent.end())).text).peer;
      },
      '127.0.0.1',
    );
  }

  if (!('get-body' in skip)) {
    behaviour(
      'a body with GET is read',
      async ({ port }) => {
        const headers = { ...json, 'content-length': 7 };
        const sent = httpRequest({ port, path: '/echo', method: 'GET', headers });
        sent.end('{"a":1}');
        return JSON.parse((await readResponse(sent)).text).fields;
      },
      { a: 1 },
    );
  }

  if (!('unknown-method' in skip)) {
    behaviour(
      'unknown method tokens are answered with 501, those of other protocols too',
      async ({ port }) => {
        const heads: string[] = [];
        for (const method of ['BREW', 'get', 'PROPFIND'])
          heads.push(await sendRaw(port, `${method} /echo`));
        return heads;
      },
      ['HTTP/1.1 501', 'HTTP/1.1 501', 'HTTP/1.1 501'],
    );
  }

  if (!('unreadable-request' in skip)) {
    behaviour(
      'a request that cannot be read is answered and leaves the server alive',
      async ({ port }) => [
        await sendRaw(port, 'GET /echo HTTP/1.1\r\nHost: a\r\nno colon'),
        await sendRaw(port, `GET /echo HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(64 * 1024)}`),
        await sendRaw(port, `POST /echo HTTP/1.1\r\n${chunked}\r\n\r\nno chunk`),
        await sendRaw(port, 'GET /echo'),
      ],
      ['HTTP/1.1 400', 'HTTP/1.1 431', 'HTTP/1.1 400', 'HTTP/1.1 200'],
    );

    behaviour(
      'a request that cannot be read behind one whose answer has begun only ends the connection',
      async ({ port }) => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => {});
        let answer = '';
        socket.on('data', (data) => {
          answer += data;
        });
        socket.write('GET /stream?endless=1 HTTP/1.1\r\nHost: a\r\n\r\n');
        await withDeadline(once(socket, 'data'));
        socket.write('no request\r\n\r\n');
        await withDeadline(once(socket, 'close'));
        return answer.match(/HTTP\/1\.1 \d+/g);
      },
      ['HTTP/1.1 200'],
    );
  }
}

const json = { 'content-type': 'application/json' };
const chunked = 'Host: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked';

function openFields() {
  return Type.Object({}, { additionalProperties: true });
}

async function readResponse(sent: ReturnType<typeof httpRequest>) {
  const [response] = await withDeadline(once(sent, 'response'));
  const pieces: Buffer[] = [];
  response.on('data', (piece: Buffer) => pieces.push(piece));
  await withDeadline(once(response, 'end'));
  const text = Buffer.concat(pieces).toString();
  return { status: response.statusCode as number, headers: response.headers, text };
}

/** The status line of the answer to a request line without a version. */
async function sendRaw(port: number, start: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const head = start.includes('HTTP/1.1') ? start : `${start} HTTP/1.1\r\nHost: a`;
  socket.write(`${head}\r\nConnection: close\r\n\r\n`);
  const line = await readHead(socket);
  socket.destroy();
  return line;
}

async function readHead(socket: Socket): Promise<string> {
  const [data] = await withDeadline(once(socket, 'data'));
  return String(data).slice(0, 'HTTP/1.1 200'.length);
}

async function withDeadline<Value>(promise: Promise<Value>): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error('nothing happened in time')), 60_000);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
