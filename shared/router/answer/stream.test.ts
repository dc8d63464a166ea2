// Streams as answers, over real connections: what happens when they fail, and when their reader disconnects.
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import test from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { createApp } from '../app.ts';
import { compress } from '../around/compress.ts';
import { Controller } from '../controller.ts';
import { defineFolder } from '../folder.ts';
import type { RoutedAnswer as Answer, ErrorReport, RoutedRequest } from '../index.ts';
import { createNodeServer } from '../mounts/node-http.ts';

/** A server with one method and one hook, which runs until `run` ends. */
async function withServer(
  value: (request: RoutedRequest) => unknown,
  run: (
    get: () => Promise<IncomingMessage>,
    reports: readonly ErrorReport[],
    port: number,
  ) => Promise<void>,
  after: (answer: Answer) => unknown = () => {},
): Promise<void> {
  const reports: ErrorReport[] = [];
  class Default extends Controller {
    GET() {
      return value(this.request);
    }
  }
  const folder = defineFolder({ after: async (answer) => void (await after(answer)) });
  const app = await createApp({
    loadModules: () =>
      new Map<string, object>([
        ['', { Default }],
        ['_folder', { folder }],
      ]) as never,
    reportError: (report) => reports.push(report),
  });
  const server = createNodeServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const get = () =>
    new Promise<IncomingMessage>((resolve, reject) => {
      httpRequest({ port, path: '/' }).on('response', resolve).on('error', reject).end();
    });
  try {
    await run(get, reports, port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function readAll(response: IncomingMessage): Promise<void> {
  for await (const _chunk of response);
}

/** Sends endlessly, or fails at its third chunk. */
function source({ fails = false }: { readonly fails?: boolean } = {}): Readable {
  let chunks = 0;
  return new Readable({
    read() {
      chunks += 1;
      if (fails && chunks === 3) this.destroy(new Error('the disk is gone'));
      else this.push(crypto.getRandomValues(Buffer.alloc(64 * 1024)));
    },
  });
}

const replacements: Readonly<Record<string, (answer: Answer) => unknown>> = {
  'left as it is': () => {},
  'piped into another stream': (answer) => {
    answer.body = Readable.from(answer.body as AsyncIterable<Uint8Array>).pipe(createGzip());
  },
  compressed: async (answer) => {
    answer.headers.set('content-type', 'text/plain');
    const request = { headers: new Headers({ 'accept-encoding': 'gzip' }) };
    await compress()(async () => answer, request as RoutedRequest);
    if (answer.headers.get('content-encoding') !== 'gzip') throw new Error('not compressed');
  },
  'read by a generator': (answer) => {
    const chunks = answer.body as AsyncIterable<Uint8Array>;
    answer.body = (async function* () {
      for await (const chunk of chunks) yield chunk;
    })();
  },
  'read by a web stream': (answer) => {
    answer.body = ReadableStream.from(answer.body as AsyncIterable<Uint8Array>);
  },
};

for (const [name, replace] of Object.entries(replacements)) {
  test(`a stream ${name} is destroyed when its reader disconnects`, async (t) => {
    const stream = source();
    await withServer(
      () => stream,
      async (get, reports) => {
        const response = await get();
        await once(response, 'readable');
        response.destroy();
        await eventually('it is destroyed', () => stream.destroyed);
        t.deepEqual(reports, []);
      },
      replace,
    );
  });

  test(`a stream ${name} that fails is reported once, and cuts the connection`, async (t) => {
    const stream = source({ fails: true });
    await withServer(
      () => stream,
      async (get, reports) => {
        await t.throwsAsync(get().then(readAll));
        t.deepEqual(
          reports.map(({ error }) => (error as Error).message),
          ['the disk is gone'],
        );
      },
      replace,
    );
  });
}

test('the source of a piped stream is destroyed when the reader disconnects', async (t) => {
  const piped = source();
  await withServer(
    () => piped.pipe(createGzip()),
    async (get) => {
      (await get()).destroy();
      await eventually('it is destroyed', () => piped.destroyed);
      t.pass();
    },
  );
});

test('a stream that is not sent is destroyed: replaced by a text, of a status without a body, or where the hook throws', async (t) => {
  for (const [expected, after] of [
    [200, (answer: Answer) => Object.assign(answer, { body: 'instead' })],
    [204, (answer: Answer) => Object.assign(answer, { status: 204 })],
    [500, () => Promise.reject(new Error('the hook'))],
  ] as const) {
    const stream = source();
    await withServer(
      () => stream,
      async (get) => {
        const response = await get();
        response.resume();
        t.is(response.statusCode, expected);
        t.is(response.headers['content-length'] === undefined, expected === 204);
        await eventually('it is destroyed', () => stream.destroyed);
      },
      after,
    );
  }
});

test('a stream that fails at once is answered as an error', async (t) => {
  await withServer(
    () => createReadStream('/none'),
    async (get, reports) => {
      t.is((await get()).resume().statusCode, 500);
      t.regex(String(reports[0]?.error), /ENOENT/);
    },
  );
});

test('a silent stream has its head sent within two seconds, and is cancelled when its reader disconnects', async (t) => {
  const cancelled = Promise.withResolvers<void>();
  await withServer(
    () => new ReadableStream({ cancel: () => cancelled.resolve() }),
    async (get) => {
      (await get()).destroy();
      await cancelled.promise;
      t.pass();
    },
  );
});

test('a replacement that fails is reported, and ends the stream that it read', async (t) => {
  const stream = source();
  const after = (answer: Answer) => {
    const chunks = answer.body as AsyncIterable<Uint8Array>;
    answer.body = (async function* () {
      for await (const chunk of {
        [Symbol.asyncIterator]: () => ({ next: () => chunks[Symbol.asyncIterator]().next() }),
      }) {
        yield chunk;
        throw new Error('the compressor');
      }
    })();
  };
  await withServer(
    () => stream,
    async (get, reports) => {
      await t.throwsAsync(get().then(readAll));
      t.regex(String(reports[0]?.error), /the compressor/);
      await eventually('it is destroyed', () => stream.destroyed);
    },
    after,
  );
});

test('a stream that fails before it is read does not end the process', async (t) => {
  for (const isReplaced of [false, true]) {
    const stream = source();
    const after = async (answer: Answer) => {
      if (isReplaced) answer.body = stream;
      stream.destroy(new Error('no such file'));
      await new Promise((resolve) => stream.once('close', resolve));
    };
    await withServer(
      () => (isReplaced ? source() : stream),
      async (get, reports) => {
        await t.throwsAsync(get().then(readAll));
        t.regex(String(reports[0]?.error), /no such file/);
      },
      after,
    );
  }
});

test('a stream whose reader disconnects before it is returned, the list of a generator and what waits with the signal end and are not failures', async (t) => {
  for (const kind of ['stream', 'list', 'wait']) {
    const stream = source();
    const begun = Promise.withResolvers<void>();
    async function* endless() {
      try {
        for (let made = 0; ; made += 1) {
          await new Promise((resolve) => setImmediate(resolve));
          yield made;
          begun.resolve();
        }
      } finally {
        stream.destroy();
      }
    }
    const late = async ({ signal }: RoutedRequest) => {
      begun.resolve();
      await once(signal, 'abort');
      if (kind === 'stream') return stream;
      stream.destroy();
      throw signal.reason;
    };
    await withServer(kind === 'list' ? endless : late, async (_get, reports, port) => {
      const request = httpRequest({ port, path: '/' }).on('error', () => {});
      request.end();
      await begun.promise;
      request.destroy();
      await eventually(`the ${kind} has ended`, () => stream.destroyed);
      t.deepEqual(reports, []);
    });
  }
});

test('an application without sockets answers a request to upgrade like any other request', async (t) => {
  await withServer(
    () => 'tea',
    async (_get, _reports, port) => {
      for (const upgrade of ['websocket', 'h2c', 'TLS/1.2']) {
        const headers = { connection: 'Upgrade', upgrade, 'sec-websocket-version': '13' };
        const asked = httpRequest({ port, headers }).end();
        const [response] = await once(asked, 'response', { signal: AbortSignal.timeout(30_000) });
        t.is(response.resume().statusCode, 200, upgrade);
      }
    },
  );
});
