// Questions to peers: over TLS with real servers, and what is remembered of their answers.
import type { LookupAddress } from 'node:dns';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, isIP } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test, { type ExecutionContext } from 'ava';
import Type, { type Static } from 'typebox';
import { systemClock } from '../../../../shared/clock.ts';
import type { TlsMaterial } from '../../../../shared/tls.ts';
import {
  caCertificate,
  clientCertificate,
  misnamedCertificate,
  serverCertificate,
  strangerCertificate,
  type TestCertificate,
} from '../../../../test/contract/grpc-transport-certificates.ts';
import { createRecordedLog } from '../../../../test/support/recorded-log.ts';
import { ComparedClocks } from '../../compared-clocks.ts';
import type { PeerSource } from './peer-list.ts';
import { createPeers, type Peers, type PeersDeps } from './peers.ts';

const schema = Type.Object({ workers: Type.Array(Type.String()) });
/** By default a peer has two seconds, which a busy machine may exceed. */
const call = { method: 'GET' as const, path: '/workers', timeoutMs: 60_000 };
const count = ({ workers }: Static<typeof schema>) => workers;
const token = 'token-of-a-caller-0001';
const trusting: TlsMaterial = { ca: Buffer.from(caCertificate), cert: undefined, key: undefined };
const presenting = ({ cert, key }: TestCertificate): TlsMaterial => ({
  ...trusting,
  cert: Buffer.from(cert),
  key: Buffer.from(key),
});

interface PeerServer {
  readonly port: number;
  /** The tokens in the requests that have reached the server. */
  readonly tokens: (string | undefined)[];
}

async function listen(
  t: ExecutionContext,
  server: ReturnType<typeof createHttpServer>,
): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const answerOne: RequestListener = (_request, response) => {
  response.end('{"workers":["a"]}');
};

/** With `clientCa`, the server requests a certificate of that CA. */
async function startSecure(
  t: ExecutionContext,
  certificate: TestCertificate = serverCertificate,
  clientCa?: string,
): Promise<PeerServer> {
  const tokens: (string | undefined)[] = [];
  const clients = { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  const server = createHttpsServer(
    { ...certificate, ...(clientCa !== undefined && clients) },
    (request, response) => {
      tokens.push(request.headers.authorization);
      answerOne(request, response);
    },
  );
  server.on('tlsClientError', () => {});
  return { port: await listen(t, server), tokens };
}

const toAddresses = (addresses: readonly string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: isIP(address) }));
const toUrl = (url: string): PeerSource => ({ kind: 'url', url: new URL(url) });

/** Peers of a name that stands for 127.0.0.1. */
function ofName(host: string, port: number, given: Partial<PeersDeps> = {}): Peers {
  return createPeers({
    sources: [{ kind: 'dns', host, port }],
    dnsProtocol: 'https:',
    lookup: async () => toAddresses(['127.0.0.1']),
    ...given,
  });
}

async function askOne(peers: Peers) {
  const [answer] = await peers.ask(call, schema, token, count);
  if (answer === undefined) throw new Error('no peer was asked');
  return answer;
}

test('a peer is asked over TLS, with the token, if one of the trusted CAs has signed its certificate', async (t) => {
  const server = await startSecure(t);
  const peers = createPeers({
    sources: [toUrl(`https://127.0.0.1:${server.port}`)],
    dnsProtocol: 'http:',
  });
  t.regex((await askOne(peers)).error ?? '', /unable to verify|unable to get local issuer/);
  t.deepEqual(server.tokens, [], 'an unknown peer gets no notice');
  peers.replaceTls(trusting);
  t.deepEqual((await askOne(peers)).value, { workers: ['a'] });
  t.deepEqual(server.tokens, [`Bearer ${token}`]);
});

test('the addresses of a name are asked over TLS, with a certificate for the name', async (t) => {
  const server = await startSecure(t);
  for (const [host, isFor] of [
    ['localhost', true],
    ['localhost.', true],
    ['127.0.0.1', true],
    ['control-planes.test', false],
  ] as const) {
    const peers = ofName(host, server.port);
    peers.replaceTls(trusting);
    const { value, error } = await askOne(peers);
    t.deepEqual(value, isFor ? { workers: ['a'] } : undefined, `${host}: ${error}`);
    if (!isFor) t.regex(error ?? '', /does not match certificate's altnames.*control-planes\.test/);
  }
  t.is(server.tokens.length, 3);
});

test('a certificate for the name is taken, whatever the address', async (t) => {
  const named = await startSecure(t, misnamedCertificate);
  const peers = ofName('other.example', named.port);
  peers.replaceTls(trusting);
  t.deepEqual((await askOne(peers)).value, { workers: ['a'] });
});

test('a peer with a certificate of another CA gets no token, and is named with the reason', async (t) => {
  const server = await startSecure(t, strangerCertificate);
  const peers = ofName('proxy.example', server.port);
  peers.replaceTls(trusting);
  const { url, error } = await askOne(peers);
  t.is(url, `https://127.0.0.1:${server.port}`);
  t.regex(error ?? '', /unable to verify|unable to get local issuer|self-signed/);
  t.deepEqual(server.tokens, []);
});

test('a peer that asks for a certificate is shown the present one', async (t) => {
  const server = await startSecure(t, serverCertificate, caCertificate);
  const peers = ofName('localhost', server.port);
  for (const [material, isAccepted] of [
    [trusting, false],
    [presenting(strangerCertificate), false],
    [presenting(clientCertificate), true],
    [presenting(serverCertificate), true],
    [trusting, false],
  ] as const) {
    peers.replaceTls(material);
    const { value, error } = await askOne(peers);
    t.is(value !== undefined, isAccepted, error);
  }
  t.is(server.tokens.length, 2);
});

test('a peer that left the list and returns is asked like a new one', async (t) => {
  let isAway = false;
  const port = await listen(
    t,
    createHttpServer((request, response) => {
      if (isAway) response.statusCode = 503;
      answerOne(request, response);
    }),
  );
  let found = ['127.0.0.1', '127.0.0.2'];
  const peers = ofName('name.test', port, {
    dnsProtocol: 'http:',
    lookup: async () => {
      if (found.length === 0) throw new Error('no such name');
      return toAddresses(found);
    },
  });
  const lasts = async () =>
    (await peers.ask(call, schema, token, count)).map((answer) =>
      answer.value === undefined ? answer.last?.length : 'answers',
    );
  t.deepEqual(await lasts(), ['answers', 'answers']);
  isAway = true;
  t.deepEqual(await lasts(), [1, 1]);
  found = [];
  t.deepEqual(await lasts(), [undefined], 'the name itself');
  found = ['127.0.0.2'];
  t.deepEqual(await lasts(), [1], 'peers stay known while the name server fails');
  found = ['127.0.0.1', '127.0.0.2'];
  t.deepEqual(await lasts(), [undefined, 1]);
});

test.serial('the answers of thousands of addresses leave nothing in memory', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const body = JSON.stringify({
    workers: Array.from({ length: 500 }, (_, i) => `${'w'.repeat(40)}${i}`),
  });
  const port = await listen(
    t,
    createHttpServer((_request, response) => void response.end(body)),
  );
  let turn = 0;
  const perTurn = 32;
  const peers = ofName('name.test', port, {
    dnsProtocol: 'http:',
    lookup: async () =>
      toAddresses(Array.from({ length: perTurn }, (_, i) => `127.1.${turn}.${i + 1}`)),
  });
  const used = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  /** Memory that the first questions of a process allocate does not count as growth. */
  const turns = { first: 5, last: 75 };
  let before = 0;
  for (turn = 0; turn < turns.last; turn++) {
    if (turn === turns.first) before = used();
    const answers = await peers.ask(call, schema, token, count);
    t.true(answers.every(({ value }) => value?.workers.length === 500));
  }
  const grown = (used() - before) / 1024 / 1024;
  t.true(grown < 5, `grown by ${grown.toFixed(1)} MiB`);
});

test('an answer that is too large is ignored', async (t) => {
  let sent = 0;
  const port = await listen(
    t,
    createHttpServer((_request, response) => {
      const chunk = Buffer.alloc(1024 * 1024, ' ');
      const send = () => {
        while (!response.destroyed && sent < 200) {
          sent++;
          if (!response.write(chunk)) return;
        }
      };
      response.on('drain', send);
      send();
    }),
  );
  const peers = createPeers({ sources: [toUrl(`http://127.0.0.1:${port}`)], dnsProtocol: 'http:' });
  t.regex((await askOne(peers)).error ?? '', /the answer is too large/);
  t.true(sent < 60, `${sent} MiB`);
});

test('the clock of a peer is compared with each of its answers', async (t) => {
  let date = new Date(Date.now() + 95_000);
  const port = await listen(
    t,
    createHttpServer((_request, response) => {
      response.setHeader('date', date.toUTCString());
      response.end('{}');
    }),
  );
  const url = new URL(`http://127.0.0.1:${port}`);
  const clocks = new ComparedClocks(systemClock, createRecordedLog());
  const peers = createPeers({ sources: [{ kind: 'url', url }], dnsProtocol: 'http:', clocks });
  await peers.ask(call, schema, undefined);
  t.regex(clocks.problem ?? '', /^the clock of this control plane is .* behind that of http:/);
  date = new Date();
  await peers.ask(call, schema, undefined);
  t.is(clocks.problem, undefined);
});

test('an answer of another version is ignored', async (t) => {
  const port = await listen(
    t,
    createHttpServer((_request, response) => void response.end('{"workers":"all"}')),
  );
  const url = new URL(`http://127.0.0.1:${port}`);
  const peers = createPeers({ sources: [{ kind: 'url', url }], dnsProtocol: 'http:' });
  const [answer] = await peers.ask(call, schema, undefined);
  t.is(answer?.error, 'its answer is from another version');
});

test('at most 32 addresses are asked, and the answer of a control plane to itself is left out', async (t) => {
  const asked: string[] = [];
  const port = await listen(
    t,
    createHttpServer((request, response) => {
      asked.push(request.url ?? '');
      if (asked.length === 1) response.statusCode = 409;
      answerOne(request, response);
    }),
  );
  const peers = ofName('name.test', port, {
    dnsProtocol: 'http:',
    lookup: async () => toAddresses(Array.from({ length: 40 }, (_, at) => `127.0.1.${at + 1}`)),
  });
  const answers = await peers.ask({ ...call, path: '/workers?top=1' }, schema, token, count);
  t.is(asked.length, 32);
  t.is(answers.length, 31);
  t.is(asked[0], `/workers?top=1&peer=${peers.id}`);
  await peers.ask(call, schema, token, count);
  t.is(asked.at(-1), `/workers?peer=${peers.id}`);
});

test('an answer that is not a success is reported with its status', async (t) => {
  const port = await listen(
    t,
    createHttpServer((request, response) => {
      response.statusCode = 410;
      answerOne(request, response);
    }),
  );
  const peers = createPeers({ sources: [toUrl(`http://127.0.0.1:${port}`)], dnsProtocol: 'http:' });
  t.like(await askOne(peers), { error: 'HTTP 410', last: undefined });
});

test('a question whose answer speaks of no workers is asked as well', async (t) => {
  const port = await listen(t, createHttpServer(answerOne));
  const peers = createPeers({ sources: [toUrl(`http://127.0.0.1:${port}`)], dnsProtocol: 'http:' });
  const [answer] = await peers.ask(call, schema, token);
  t.deepEqual(answer?.value, { workers: ['a'] });
});
