import test from 'ava';
import { mergeFleets } from './fleet-json.ts';
import { toGoneJson, type WorkerJson } from './worker-json.ts';

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
  const { gone } = mergeFleets([
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
