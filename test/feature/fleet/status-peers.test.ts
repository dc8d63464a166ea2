// Tests that a control plane's status covers its peers too: real admin APIs, and peers that are unreachable, slow or
// lying.
import { createServer, type RequestListener } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { watchWorkers } from '../../../control-plane/server/admin/status.ts';
import { statusJson } from '../../../control-plane/server/admin/status-report.ts';
import { createExchangeAsk } from '../../../control-plane/server/record/peers/exchange.ts';
import type { PeerSource } from '../../../control-plane/server/record/peers/peer-list.ts';
import { createPeers } from '../../../control-plane/server/record/peers/peers.ts';
import { startAdminApi } from '../../support/admin-api.ts';
import { runInProcess } from '../../support/command-run.ts';
import { freePort } from '../../support/free-port.ts';
import { listenFor } from '../../support/listen.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const files = {
  'a.yaml': 'domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]\n',
};
/** For a busy machine: a delayed peer must not be mistaken for an unreachable one. */
const peerAnswerMs = 60_000;
const tokens = `pipeline read ${'r'.repeat(32)}\n`;

async function startPlane(t: ExecutionContext, peers: readonly PeerSource[], given: object = {}) {
  const options = { files, peers, peerAnswerMs };
  return (await startAdminApi(t, { ...options, ...given })).url;
}

async function serve(t: ExecutionContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  return `http://127.0.0.1:${await listenFor(t, server)}`;
}

const peer = (url: string): PeerSource => ({ kind: 'url', url: new URL(url) });
const statusOf = async (url: string, init?: RequestInit) =>
  // biome-ignore lint/suspicious/noExplicitAny: read by the test
  (await (await fetch(`${url}/status`, init)).json()) as any;

/** A control plane with this many workers that have what it serves. */
async function serveLike(
  t: ExecutionContext,
  url: string,
  connected: number,
  change: object = {},
): Promise<string> {
  const status = await statusOf(url);
  const workers = { connected, inForce: connected, onTrial: 0, pending: 0, refused: 0, gone: 0 };
  const body = JSON.stringify({ ...status, verdict: 'in_force', workers, ...change });
  return serve(t, (_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(body);
  });
}

test('the status covers the workers of all control planes', async (t) => {
  const alone = await startPlane(t, []);
  const peers = [await serveLike(t, alone, 3), await serveLike(t, alone, 4)];
  const asked = await startPlane(t, peers.map(peer));
  const status = await statusOf(asked);
  t.like(status, { verdict: 'in_force', workers: { connected: 7, inForce: 7 } });
  t.regex(status.text, /^revision [0-9a-f]{12} is in force on all 7 connected workers$/);
  t.deepEqual(
    status.controlPlanes.map(({ url, connected }: { url: string; connected: number }) => [
      url,
      connected,
    ]),
    [
      ['this', 0],
      [peers[0], 3],
      [peers[1], 4],
    ],
  );
  const run = await runInProcess(['status', '--admin-url', asked, '--min-workers', '7']);
  t.is(run.code, 0, run.out);
});

test('each control plane is listed with what it serves, and with what it may forget', async (t) => {
  const alone = await startPlane(t, []);
  const problem = '/rules rejects writes (EROFS)';
  const { inForce, memory } = await statusOf(alone);
  const other = await serveLike(t, alone, 1, {
    inForce: { ...inForce, id: 'a'.repeat(64), content: 'another one' },
    memory: { ...memory, problem },
  });
  const asked = await startPlane(t, [peer(other)]);
  const { controlPlanes } = await statusOf(asked);
  t.like(controlPlanes[0], { url: 'this', inForce: inForce.id, trial: null, memoryProblem: null });
  t.like(controlPlanes[1], { inForce: 'a'.repeat(64), trial: null, memoryProblem: problem });
  const run = await runInProcess(['status', '--admin-url', asked, '--min-workers', '0']);
  t.true(run.err.endsWith(`warning: ${other}: ${problem}\n`), run.err);
  const direct = await runInProcess(['status', '--admin-url', other, '--min-workers', '0']);
  t.true(direct.err.endsWith(`warning: ${problem}\n`), direct.err);
});

test('a peer that does not answer is named, and the status is not known', async (t) => {
  const gone = `http://127.0.0.1:${await freePort()}`;
  const asked = await startPlane(t, [peer(gone)]);
  const status = await statusOf(asked);
  t.is(status.verdict, 'not_known');
  t.true(status.text.startsWith(`not known: peer ${gone} does not answer (`), status.text);
  t.regex(
    status.text,
    /so it is unknown for its workers; if it is gone for good, remove it from --peers$/,
  );
  t.like(await runInProcess(['status', '--admin-url', asked, '--min-workers', '0']), { code: 3 });
});

/** A peer that has workers with these instances, until `become` changes them; without any it is unreachable. */
async function serveInstances(t: ExecutionContext, first: readonly (string | null)[]) {
  const body = await statusOf(await startPlane(t, []));
  let instances: readonly (string | null)[] | undefined = first;
  const url = await serve(t, (_request, response) => {
    if (instances === undefined) response.statusCode = 503;
    response.setHeader('content-type', 'application/json');
    const count = instances?.length ?? 0;
    const workers = { ...body.workers, connected: count, inForce: count };
    response.end(JSON.stringify({ ...body, verdict: 'in_force', workers, instances }));
  });
  return {
    url,
    become(next: readonly (string | null)[] | undefined) {
      instances = next;
    },
  };
}

test('with an unreachable peer, only those of its workers that are at no other control plane are unknown', async (t) => {
  const lost = await serveInstances(t, ['a', 'b', 'c', null]);
  const other = await serveInstances(t, ['d']);
  const asked = await startPlane(t, [peer(lost.url), peer(other.url)]);
  t.is((await statusOf(asked)).workers.connected, 5);
  lost.become(undefined);
  const away = `not known: peer ${lost.url} does not answer (HTTP 503), so it is unknown for`;
  const lasting = 'if it is gone for good, remove it from --peers';
  t.is((await statusOf(asked)).text, `${away} 4 workers; ${lasting}`);
  // It is unknown whether a worker without an instance is the same one.
  other.become(['d', 'a', 'c', null]);
  t.is((await statusOf(asked)).text, `${away} 2 of its 4 workers; ${lasting}`);
});

test('a peer that is gone for good is a warning if all of its workers have connected to others', async (t) => {
  const lost = await serveInstances(t, ['a', 'b']);
  const other = await serveInstances(t, ['c']);
  const asked = await startPlane(t, [peer(lost.url), peer(other.url)]);
  await statusOf(asked);
  lost.become(undefined);
  other.become(['a', 'b', 'c']);
  const run = await runInProcess(['status', '--admin-url', asked, '--wait', '--timeout', '1m']);
  t.is(run.code, 0, run.err);
  t.regex(run.out, /^revision \w{12} is in force on all 3 connected workers\n/);
  t.true(
    run.err.endsWith(
      `warning: peer ${lost.url} does not answer (HTTP 503); its 2 workers moved to other control planes; if it is gone for good, remove it from --peers\n`,
    ),
    run.err,
  );
  t.false('instances' in (await statusOf(asked)), 'they are for peers');
});

test('the workers of a peer that has just been lost are remembered, whoever asks first', async (t) => {
  const lost = await serveInstances(t, ['a']);
  const other = await serveInstances(t, ['a']);
  const clock = createManualClock();
  const peers = createPeers({ sources: [lost.url, other.url].map(peer), dnsProtocol: 'http:' });
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const ask: typeof peers.ask = async (...question) => {
    const answers = await peers.ask(...question);
    resolve();
    return answers;
  };
  t.teardown(watchWorkers(createExchangeAsk({ ask }, undefined), clock, () => {}));
  await asked;
  lost.become(undefined);
  const answers = await peers.ask({ method: 'GET', path: '/status' }, statusJson, undefined);
  t.deepEqual(answers[0], { url: lost.url, error: 'HTTP 503', last: ['a'] });
});

/** The error of each unreachable peer. */
const errorsOf = ({ controlPlanes }: { controlPlanes: { error: string | null }[] }) =>
  controlPlanes.flatMap(({ error }) => (error === null ? [] : error.replace(/.*\((.*)\).*/, '$1')));

test('the wait for a peer that is slow, or answers without an end, is two seconds', async (t) => {
  const slow = await serve(t, () => {});
  const endless = await serve(t, (_request, response) => {
    const timer = setInterval(() => response.write(' '.repeat(1024)), 10);
    response.on('close', () => clearInterval(timer));
  });
  const asked = await startPlane(t, [slow, endless].map(peer), { peerAnswerMs: undefined });
  const status = await statusOf(asked);
  t.is(status.verdict, 'not_known');
  t.deepEqual(
    errorsOf(status).map((error) => error.replace(/.*: no answer/, 'no answer')),
    ['no answer within 2s', 'no answer within 2s'],
  );
});

test("requests to peers carry the caller's token", async (t) => {
  const one = await startPlane(t, [], { tokens });
  const asked = await startPlane(t, [peer(one)], { tokens });
  const authorization = `Bearer ${'r'.repeat(32)}`;
  const status = await statusOf(asked, { headers: { authorization } });
  t.deepEqual(
    status.controlPlanes.map(({ error }: { error: string | null }) => error),
    [null, null],
  );
  t.is((await fetch(`${asked}/status`)).status, 401);
});
