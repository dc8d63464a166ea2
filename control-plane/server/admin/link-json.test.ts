// Tests links that rollouts are not judged by, and the attribution of figures, with streams that lie.
import test from 'ava';
import { startAdminApi } from '../../../test/support/admin-api.ts';
import { pluck } from '../../../test/support/pluck.ts';
import type { LinkedWorker } from '../fleet/fleet.ts';
import { toFigures, toTotals } from '../fleet/worker-figures.ts';
import { toLinksJson } from './link-json.ts';
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
      problem: 'no worker of this instance takes its rules here',
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
