// Tests links that rollouts are not judged by, the attribution of figures with streams that lie, and workers that are
// gone.
import test from 'ava';
import { startAdminApi } from '../../../test/support/admin-api.ts';
import { pluck } from '../../../test/support/pluck.ts';
import type { LinkedWorker } from '../fleet/fleet.ts';
import { toFigures, toTotals } from '../fleet/worker-figures.ts';
import { toFleet, toGoneJson, toLinksJson, type WorkerJson } from './fleet-json.ts';
import { createFindFigures } from './traffic-json.ts';

const report = { version: 'v', seconds: 1, rules: [], otherRuleCount: 0, unmatched: [] };

/** A link whose worker decides `rate` requests a second. */
function linkOf(nodeId: string, instance: string, rate = 0): LinkedWorker {
  return {
    hello: { nodeId, instance, agreement: '', countsAlone: false, allowsReset: false, values: 2 },
    address: '10.0.0.1:7',
    figures: toFigures(report, { ...toTotals(undefined), decisions: rate }, 0),
  };
}

function workerOf(id: string, instance?: string) {
  return { node: { id, cluster: '', metadata: new Map() }, instance, address: '10.0.0.1:5' };
}

test('a link without a stream of its instance and node id is marked', (t) => {
  const linked = [linkOf('w', 'i-1'), linkOf('w', 'i-2'), linkOf('other', 'i-3')];
  const workers = [workerOf('w', 'i-1'), workerOf('w', 'i-3'), workerOf('w')];
  const address = '10.0.0.1:7';
  t.deepEqual(toLinksJson(linked, workers), [
    {
      id: 'w',
      instance: 'i-2',
      address,
      problem: 'no worker of this instance gets its rules here',
    },
    {
      id: 'other',
      instance: 'i-3',
      address,
      problem: "the worker of this instance takes its rules as node 'w'",
    },
  ]);
});

test('figures are found by instance, and those of a worker without one by its node id and host', (t) => {
  const linked = [
    linkOf('w', 'i-1', 1),
    linkOf('w', 'i-2', 10),
    linkOf('liar', 'i-3', 100),
    linkOf('w', 'unknown', 1_000),
    linkOf('w', 'unknown as well', 2_000),
  ];
  const workers = [workerOf('w', 'i-1'), workerOf('w', 'i-2'), workerOf('w', 'i-3'), workerOf('w')];
  const find = createFindFigures(linked, workers);
  t.deepEqual(
    workers.map((worker) => find(worker)?.decisionsPerSecond),
    [1, 10, undefined, 3_000],
  );
  t.is(find(workerOf('w', 'i-9')), null);
});

test('names are unique among the workers of all control planes, and as many links are marked', async (t) => {
  const connected = (id: string, instance: string) => ({
    ...workerOf(id, instance),
    mode: 'sotw' as const,
    sinceMs: 0,
    sent: undefined,
    acked: undefined,
    nacked: undefined,
    wantedVersion: () => undefined,
  });
  const toApi = (instance: string) => ({
    files: {},
    workers: { list: () => [connected('edge', instance)] },
    fleet: { list: () => [linkOf('edge', instance), linkOf('stranger', `of ${instance}`)] },
  });
  const peer = await startAdminApi(t, toApi('i-1'));
  const url = new URL(peer.url);
  const { ask } = await startAdminApi(t, { ...toApi('i-2'), peers: [{ kind: 'url', url }] });
  const { workers, links } = (await ask('GET', '/workers')).body as {
    workers: { name: string }[];
    links: { instance: string }[];
  };
  t.deepEqual(pluck(workers, 'name'), ['edge (instance i-2)', 'edge (instance i-1)']);
  t.deepEqual(pluck(links, 'instance'), ['of i-2', 'of i-1']);
});

const nowMs = 1_800_000_000_000;

function goneOf(id: string, instance: string | undefined, agoMs: number) {
  const node = { id, cluster: '', metadata: new Map() };
  const acked = { version: 'v1', atMs: nowMs - 90_000 };
  const nacked = { version: 'v2', text: 'no such unit', atMs: nowMs - 70_000 };
  const gone = {
    node,
    instance,
    address: '10.0.0.1:5',
    sent: acked,
    acked,
    nacked,
    goneAtMs: 500_000 - agoMs,
  };
  return toGoneJson([gone], { wallMs: nowMs, monotonicMs: 500_000 });
}

test('a worker is gone since its connection broke, in wall time, with its last version and refusal', (t) => {
  t.deepEqual(goneOf('w', 'i', 60_000), [
    {
      id: 'w',
      instance: 'i',
      address: '10.0.0.1:5',
      version: 'v1',
      at: new Date(nowMs - 60_000).toISOString(),
      refusal: { at: new Date(nowMs - 70_000).toISOString(), text: 'no such unit' },
    },
  ]);
});

test('a worker that is connected to another control plane now is not gone', (t) => {
  const back = { id: 'w', instance: 'i-1', address: '10.0.0.1:6' } as WorkerJson;
  const other = { id: 'foreign', instance: null, address: '10.0.0.2:6' } as WorkerJson;
  const { gone } = toFleet([
    { workers: [], links: [], gone: [...goneOf('w', 'i-1', 9_000), ...goneOf('w', 'i-2', 8_000)] },
    { workers: [back, other], links: [], gone: goneOf('foreign', undefined, 7_000) },
    { workers: [], links: [], gone: goneOf('last', 'i-3', 1_000) },
  ]);
  t.deepEqual(
    gone.map(({ id, instance }) => [id, instance]),
    [
      ['last', 'i-3'],
      ['w', 'i-2'],
    ],
  );
});
