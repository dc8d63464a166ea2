// What every gRPC transport must do, as one suite: each implementation runs it from its own test
// file. What the methods mean is tested beside them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext, TestFn } from 'ava';
import { type Clock, systemClock } from '../../shared/clock.ts';
import type { ListenAddress } from '../../worker/listen/address.ts';
import type {
  GrpcMethod,
  StreamCaller,
  StreamHandler,
  UnaryMethod,
} from '../../worker/listen/grpc/method.ts';
import {
  type CreateGrpcTransport,
  type GrpcTransport,
  type GrpcTransportOptions,
  maxRequestBytes,
} from '../../worker/listen/grpc/transport.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createRecordedLog, type RecordedLog } from '../support/recorded-log.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Caller, type CallerTls, createCaller, frame } from './grpc-transport-caller.ts';
import {
  authority,
  clientCertificate,
  misnamedCertificate,
  renewedCertificate,
  serverCertificate,
  strangerCertificate,
} from './grpc-transport-certificates.ts';

interface Started {
  readonly transport: GrpcTransport;
  readonly address: ListenAddress;
  readonly log: RecordedLog;
  connect(tls?: CallerTls): Promise<Caller>;
}

const anyPort = { host: '127.0.0.1', port: 0 };

/** Answers with the request's bytes. */
const echo: UnaryMethod = {
  kind: 'unary',
  answer(request, _timeoutMs, reply) {
    reply({ ok: true, message: Buffer.from(request) });
    return () => {};
  },
};

export function testGrpcTransport(
  test: TestFn,
  suite: { readonly name: string; readonly createTransport: CreateGrpcTransport },
): void {
  async function start(
    t: ExecutionContext,
    methods: Record<string, GrpcMethod> = { '/test.Echo/Echo': echo },
    options: Partial<GrpcTransportOptions> = {},
    clock: Clock = systemClock,
  ): Promise<Started> {
    const log = createRecordedLog();
    const transport = suite.createTransport(
      { methods: new Map(Object.entries(methods)), log, clock },
      { target: anyPort, ...options },
    );
    t.teardown(() => transport.stop(0));
    const address = await transport.start();
    return {
      transport,
      address,
      log,
      async connect(tls) {
        const caller = await createCaller(address, tls);
        t.teardown(caller.close);
        return caller;
      },
    };
  }

  const check = (title: string, run: (t: ExecutionContext) => Promise<void>) =>
    test(`${suite.name}: ${title}`, run);

  check('a request reaches its method and the answer comes back, byte for byte', async (t) => {
    const caller = await (await start(t)).connect();
    for (const message of [Buffer.of(), Buffer.of(0, 255, 128), Buffer.alloc(100_000, 7)]) {
      const answer = await caller.call('/test.Echo/Echo', message);
      t.is(answer.grpcStatus, 0);
      t.is(answer.httpStatus, 200);
      t.deepEqual(answer.messages, [message]);
    }
  });

  check('a message may arrive in any number of pieces', async (t) => {
    const caller = await (await start(t)).connect();
    const call = caller.open('/test.Echo/Echo');
    for (const byte of frame(Buffer.from('in pieces'))) {
      await new Promise((resolve) => call.stream.write(Buffer.of(byte), resolve));
    }
    call.stream.end();
    t.deepEqual((await call.answer).messages, [Buffer.from('in pieces')]);
  });

  check('calls on one connection are answered independently of their order', async (t) => {
    const replies: (() => void)[] = [];
    const caller = await (
      await start(t, {
        '/test.Echo/Echo': {
          kind: 'unary',
          answer(request, _timeoutMs, reply) {
            const message = Buffer.from(request);
            replies.push(() => reply({ ok: true, message }));
            return () => {};
          },
        },
      })
    ).connect();
    const answers = Array.from({ length: 200 }, (_, index) =>
      caller.call('/test.Echo/Echo', Buffer.from(`${index}`)),
    );
    t.true(await waitUntil(() => replies.length === 200, 10_000));
    for (const reply of replies.reverse()) reply();
    for (const [index, answer] of (await Promise.all(answers)).entries()) {
      t.deepEqual(answer.messages, [Buffer.from(`${index}`)]);
    }
  });

  check('an error carries its status and its text, whatever is in it', async (t) => {
    for (const text of ['plain', '100 % "quoted"\nand\tso on', 'naïve 😀', 'half \ud800 pair']) {
      const { connect } = await start(t, {
        '/test.Echo/Echo': {
          kind: 'unary',
          answer(_request, _timeoutMs, reply) {
            reply({ ok: false, status: 2, text });
            return () => {};
          },
        },
      });
      const answer = await (await connect()).call('/test.Echo/Echo', Buffer.of());
      t.is(answer.grpcStatus, 2);
      t.is(answer.text, text.toWellFormed());
      t.deepEqual(answer.messages, []);
    }
  });

  check('paths that are not there are UNIMPLEMENTED in the words of the reference', async (t) => {
    const caller = await (await start(t)).connect();
    const texts = {
      '/other.Service/Echo': 'unknown service other.Service',
      '/test.Echo/Other': 'unknown method Other for service test.Echo',
      '/nonsense': 'malformed method name: "/nonsense"',
      '/test.Ech/Echo': 'unknown service test.Ech',
    };
    for (const [path, text] of Object.entries(texts)) {
      const answer = await caller.call(path, Buffer.from('body'));
      t.is(answer.grpcStatus, 12);
      t.is(answer.text, text);
    }
  });

  check('a request of 4 MiB is taken and a larger one refused', async (t) => {
    const caller = await (await start(t)).connect();
    const largest = await caller.call('/test.Echo/Echo', Buffer.alloc(maxRequestBytes));
    t.is(largest.grpcStatus, 0);
    t.is(largest.messages[0]?.length, maxRequestBytes);
    const larger = await caller.call('/test.Echo/Echo', Buffer.alloc(maxRequestBytes + 1));
    t.is(larger.grpcStatus, 8);
    t.is(larger.text, 'grpc: received message larger than max (4194305 vs. 4194304)');
    t.is((await caller.call('/test.Echo/Echo', Buffer.of(1))).grpcStatus, 0);
  });

  check('a method learns how long its caller waits', async (t) => {
    const timeouts: (number | undefined)[] = [];
    const { connect } = await start(t, {
      '/test.Echo/Echo': {
        kind: 'unary',
        answer(request, timeoutMs, reply) {
          timeouts.push(timeoutMs);
          return echo.answer(request, timeoutMs, reply);
        },
      },
    });
    const caller = await connect();
    await caller.call('/test.Echo/Echo', Buffer.of());
    await caller.call('/test.Echo/Echo', Buffer.of(), { 'grpc-timeout': '30S' });
    await caller.call('/test.Echo/Echo', Buffer.of(), { 'grpc-timeout': '50000m' });
    t.is(timeouts[0], undefined);
    t.true((timeouts[1] ?? 0) > 20_000 && (timeouts[1] ?? 0) <= 30_000);
    t.true((timeouts[2] ?? 0) > 40_000 && (timeouts[2] ?? 0) <= 50_000);
  });

  check('a caller that has waited its time is told so, and so is the method', async (t) => {
    const calls = recordCalls();
    const caller = await (await start(t, { '/test.Echo/Echo': calls.method })).connect();
    const answer = await caller.call('/test.Echo/Echo', Buffer.of(), { 'grpc-timeout': '50m' });
    t.is(answer.grpcStatus, 4);
    t.true(await waitUntil(() => calls.gone === 1, 5000));
    t.notThrows(() => calls.replies[0]?.());
  });

  check('a method learns that its caller has gone, and may still answer', async (t) => {
    const calls = recordCalls();
    const { connect } = await start(t, { '/test.Echo/Echo': calls.method });
    const caller = await connect();
    const call = caller.open('/test.Echo/Echo');
    call.stream.end(frame(Buffer.of()));
    t.true(await waitUntil(() => calls.replies.length === 1, 5000));
    call.stream.close(8);
    t.true(await waitUntil(() => calls.gone === 1, 5000));
    t.notThrows(() => calls.replies[0]?.());

    caller.open('/test.Echo/Echo').stream.end(frame(Buffer.of()));
    t.true(await waitUntil(() => calls.replies.length === 2, 5000));
    caller.session.socket.destroy();
    t.true(await waitUntil(() => calls.gone === 2, 5000));
    t.notThrows(() => calls.replies[1]?.());
  });

  check('a stream carries messages both ways until either side ends it', async (t) => {
    const events: string[] = [];
    const { connect } = await start(t, {
      '/test.Chat/Chat': toStream((caller) => ({
        message(bytes) {
          events.push(`message ${bytes}`);
          if (`${bytes}` === 'fail') caller.finish({ status: 5, text: 'as asked' });
          else caller.send(Buffer.from(`re: ${bytes}`));
        },
        halfClose() {
          events.push('half-close');
          caller.finish();
        },
        closed: () => events.push('closed'),
      })),
    });
    const caller = await connect();
    const ended = caller.open('/test.Chat/Chat');
    ended.send(Buffer.from('one'));
    ended.send(Buffer.from('two'));
    ended.stream.end();
    const answer = await ended.answer;
    t.is(answer.grpcStatus, 0);
    t.deepEqual(answer.messages.map(String), ['re: one', 're: two']);
    t.deepEqual(events.splice(0), ['message one', 'message two', 'half-close', 'closed']);

    const failed = caller.open('/test.Chat/Chat');
    failed.send(Buffer.from('fail'));
    const failure = await failed.answer;
    t.is(failure.grpcStatus, 5);
    t.is(failure.text, 'as asked');
    t.deepEqual(events.splice(0), ['message fail', 'closed']);

    const left = caller.open('/test.Chat/Chat');
    left.send(Buffer.from('bye'));
    t.true(await waitUntil(() => events.length === 1, 5000));
    left.stream.close(8);
    t.true(await waitUntil(() => events.includes('closed'), 5000));
    t.is(events.filter((event) => event === 'closed').length, 1);
  });

  check('a caller that does not read is not read from without end', async (t) => {
    const chunk = Buffer.alloc(16_384, 1);
    let received = 0;
    const { connect } = await start(t, {
      '/test.Chat/Chat': toStream((caller) => ({
        message() {
          received++;
          for (let index = 0; index < 8; index++) caller.send(chunk);
        },
        halfClose() {},
        closed() {},
      })),
    });
    const call = (await connect()).open('/test.Chat/Chat');
    call.stream.pause();
    const sent = 5000;
    for (let index = 0; index < sent; index++) call.send(Buffer.of(1));
    t.true(await waitUntil(() => received > 0, 5000));
    let before = -1;
    // It has come to a halt when nothing more was taken for a while.
    await waitUntil(
      () => {
        const halted = received === before;
        before = received;
        return halted;
      },
      5000,
      200,
    );
    t.true(received < 1000, `${received} of ${sent} messages were taken`);
    call.stream.close(8);
  });

  check('stopping lets calls in flight finish and ends streams', async (t) => {
    const calls = recordCalls();
    const { transport, connect, address } = await start(t, {
      '/test.Echo/Echo': calls.method,
      '/test.Chat/Chat': toStream(() => ({ message() {}, halfClose() {}, closed() {} })),
    });
    const caller = await connect();
    const pending = caller.call('/test.Echo/Echo', Buffer.from('x'));
    const stream = caller.open('/test.Chat/Chat');
    stream.send(Buffer.of());
    t.true(await waitUntil(() => calls.replies.length === 1, 5000));
    const stopped = transport.stop(30_000);
    t.is((await stream.answer).grpcStatus, 14);
    await t.throwsAsync(createCaller(address));
    calls.replies[0]?.();
    t.is((await pending).grpcStatus, 0);
    await stopped;
    await transport.stop(0);
  });

  check('stopping cuts what is left after the grace time', async (t) => {
    const calls = recordCalls();
    const { transport, connect } = await start(t, { '/test.Echo/Echo': calls.method });
    const pending = (await connect()).call('/test.Echo/Echo', Buffer.of());
    t.true(await waitUntil(() => calls.replies.length === 1, 5000));
    await transport.stop(50);
    await t.throwsAsync(pending);
    t.true(await waitUntil(() => calls.gone === 1, 5000));
  });

  check('a connection is told to go at its age, give or take a tenth', async (t) => {
    const { connect } = await start(t, undefined, { maxConnectionAgeMs: 300 });
    const startMs = performance.now();
    const caller = await connect();
    t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
    await once(caller.session, 'goaway', { signal: AbortSignal.timeout(5000) });
    const ageMs = performance.now() - startMs;
    t.true(ageMs > 250, `told to go after ${ageMs} ms`);
    t.true(await waitUntil(() => caller.session.destroyed, 5000));
  });

  check('a call that outlasts the grace of its connection is cut', async (t) => {
    const calls = recordCalls();
    const { connect } = await start(
      t,
      { '/test.Echo/Echo': calls.method },
      { maxConnectionAgeMs: 100, maxConnectionAgeGraceMs: 100 },
    );
    await t.throwsAsync((await connect()).call('/test.Echo/Echo', Buffer.of()));
    t.true(await waitUntil(() => calls.gone === 1, 5000));
  });

  check('an age of a year does not end connections at once', async (t) => {
    const year = 365 * 24 * 60 * 60 * 1000;
    const { connect } = await start(t, undefined, {
      maxConnectionAgeMs: year,
      maxConnectionAgeGraceMs: year,
    });
    const caller = await connect();
    let isToldToGo = false;
    caller.session.on('goaway', () => {
      isToldToGo = true;
    });
    for (let index = 0; index < 20; index++) {
      t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
    }
    t.false(isToldToGo);
  });

  check('requests that are not gRPC are refused', async (t) => {
    const caller = await (await start(t)).connect();
    const answer = await caller.call('/test.Echo/Echo', Buffer.of(), {
      'content-type': 'text/html',
    });
    t.is(answer.httpStatus, 415);
    t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  });

  check('bytes that are no HTTP/2, or a damaged one, harm nobody else', async (t) => {
    const { address, connect } = await start(t);
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    const settings = Buffer.from('000000040000000000', 'hex');
    let seed = 42;
    const random = (limit: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % limit;
    };
    const randomFrame = () => {
      const body = Buffer.from(Array.from({ length: random(30) }, () => random(256)));
      const head = Buffer.from([0, 0, body.length, random(11), random(256), 0, 0, 0, random(6)]);
      return Buffer.concat([head, body]);
    };
    for (let round = 0; round < 60; round++) {
      const socket = connectSocket({ host: '127.0.0.1', port: address.port });
      socket.on('error', () => {});
      socket.write(round % 6 === 0 ? 'GET / HTTP/1.1\r\n\r\n' : Buffer.concat([preface, settings]));
      for (let index = 0; index < 5; index++) socket.write(randomFrame());
      socket.end();
      socket.resume();
      const closed = once(socket, 'close', { signal: AbortSignal.timeout(5000) }).catch(() => {});
      await closed;
      socket.destroy();
    }
    t.is((await (await connect()).call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  });

  check(
    'a connection that stays silent is cut after ten seconds, one that spoke is not',
    async (t) => {
      const clock = createManualClock();
      const { address, connect, transport } = await start(t, undefined, {}, clock);
      const caller = await connect();
      t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
      const silent = connectSocket({ host: '127.0.0.1', port: address.port });
      silent.on('error', () => {});
      silent.resume();
      const closed = once(silent, 'close', { signal: AbortSignal.timeout(5000) });
      t.true(await waitUntil(() => clock.pending === 2, 5000));
      clock.advance(10_000);
      await closed;
      t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
      caller.close();
      await transport.stop(0);
    },
  );

  check('a port in use is named together with the settings to change', async (t) => {
    const { address } = await start(t);
    const second = start(t, undefined, { target: { host: '127.0.0.1', port: address.port } });
    await t.throwsAsync(second, {
      message:
        `cannot listen for gRPC on 127.0.0.1:${address.port}: the port is in use; ` +
        'set GRPC_PORT (and GRPC_HOST) to another',
    });
  });

  check('an address of another machine is named together with the setting to change', async (t) => {
    await t.throwsAsync(start(t, undefined, { target: { host: '192.0.2.1', port: 0 } }), {
      message:
        'cannot listen for gRPC on 192.0.2.1:0: this machine has no such address; ' +
        'set GRPC_HOST to one that it has, or to 0.0.0.0',
    });
  });

  check('a unix socket is served, and its file removed at the end', async (t) => {
    const path = join(createFolder(t), 'rl.sock');
    const { connect, transport, address } = await start(t, undefined, { target: { path } });
    t.is(address.text, path);
    const caller = await connect();
    t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
    t.true(existsSync(path));
    caller.close();
    await transport.stop(1000);
    t.false(existsSync(path));
  });

  check(
    'the socket file of a killed process is replaced, that of a living one is not',
    async (t) => {
      const folder = createFolder(t);
      const path = join(folder, 'rl.sock');
      await leaveStaleSocket(path);
      t.true(existsSync(path));
      const { connect } = await start(t, undefined, { target: { path } });
      t.is((await (await connect()).call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
      await t.throwsAsync(start(t, undefined, { target: { path } }), {
        message:
          `cannot listen for gRPC on the unix socket ${path}: another process listens there; ` +
          'set GRPC_UDS to another path',
      });
      t.is((await (await connect()).call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
    },
  );

  check('a file that is no socket is left alone', async (t) => {
    const folder = createFolder(t);
    const file = join(folder, 'precious.txt');
    writeFileSync(file, 'precious');
    await t.throwsAsync(start(t, undefined, { target: { path: file } }), {
      message:
        `cannot listen for gRPC on the unix socket ${file}: there is a file that is not a socket; ` +
        'remove it, or set GRPC_UDS to another path',
    });
    t.true(existsSync(file));
    const missing = join(folder, 'missing', 'rl.sock');
    await t.throwsAsync(start(t, undefined, { target: { path: missing } }), {
      message: new RegExp(`on the unix socket ${missing}: its directory does not exist`),
    });
  });

  check('TLS serves those who trust its certificate', async (t) => {
    const { connect } = await start(t, undefined, { tls: serverCertificate });
    const caller = await connect({ ca: authority });
    t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
    await t.throwsAsync(expectServed(() => connect()));
  });

  check('with a client authority, only callers with its certificates are served', async (t) => {
    const { connect } = await start(t, undefined, {
      tls: { ...serverCertificate, clientCa: authority },
    });
    const caller = await connect({ ca: authority, ...misnamedCertificate });
    t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
    await t.throwsAsync(expectServed(() => connect({ ca: authority })));
    await t.throwsAsync(expectServed(() => connect({ ca: authority, ...strangerCertificate })));
  });

  check('a client name is looked for among the alternative names alone', async (t) => {
    const { connect, log } = await start(t, undefined, {
      tls: { ...serverCertificate, clientCa: authority, clientSan: 'proxy.example' },
    });
    const caller = await connect({ ca: authority, ...clientCertificate });
    t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
    await t.throwsAsync(expectServed(() => connect({ ca: authority, ...misnamedCertificate })));
    t.true(
      log.lines.includes(
        'warning error validating client: its certificate is valid for DNS:other.example, ' +
          'not proxy.example',
      ),
    );
  });

  check('a certificate can be replaced while connections stay', async (t) => {
    const { connect, transport } = await start(t, undefined, { tls: serverCertificate });
    const before = await connect({ ca: authority });
    t.is(peerName(before), 'server');
    t.throws(() =>
      transport.replaceCertificate({ cert: renewedCertificate.cert, key: serverCertificate.key }),
    );
    t.is(peerName(await connect({ ca: authority })), 'server');
    transport.replaceCertificate(renewedCertificate);
    t.is(peerName(await connect({ ca: authority })), 'renewed');
    t.is((await before.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  });
}

/** A method whose answers are given by the test. */
function recordCalls() {
  const calls = {
    replies: [] as (() => void)[],
    gone: 0,
    method: {
      kind: 'unary',
      answer(request, _timeoutMs, reply) {
        const message = Buffer.from(request);
        calls.replies.push(() => reply({ ok: true, message }));
        return () => {
          calls.gone++;
        };
      },
    } satisfies UnaryMethod as UnaryMethod,
  };
  return calls;
}

function toStream(open: (caller: StreamCaller) => StreamHandler): GrpcMethod {
  return { kind: 'stream', open };
}

function createFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'ratelane-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** What a refused handshake leaves may first look like a connection: only a session counts. */
async function expectServed(open: () => Promise<Caller>): Promise<void> {
  const caller = await open();
  const answer = await caller.call('/test.Echo/Echo', Buffer.of());
  if (answer.grpcStatus !== 0) throw new Error('refused');
}

function peerName(caller: Caller): string | undefined {
  const socket = caller.session.socket as unknown as {
    getPeerCertificate(): { subject: { CN?: string } };
  };
  return socket.getPeerCertificate().subject.CN;
}

/** Listens in a way that leaves the file behind, as a killed process does. */
async function leaveStaleSocket(path: string): Promise<void> {
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data', { signal: AbortSignal.timeout(10_000) });
  child.kill('SIGKILL');
  await once(child, 'exit');
}
