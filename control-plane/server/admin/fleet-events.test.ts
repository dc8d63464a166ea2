import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import type { LinkedWorker } from '../fleet/fleet.ts';
import { createActivity } from '../history/activity/activity.ts';
import { createMarks } from '../history/last-hour/marks.ts';
import { pollMs, watchFleet } from './fleet-events.ts';

function link(name: string, given: { readonly sinceMs?: number; readonly mode?: string }) {
  const { sinceMs, mode = 'allow' } = given;
  return {
    hello: { nodeId: name, instance: name, failureMode: mode, values: 2 },
    figures: {
      errorsPerSecond: 0,
      ...{ atMs: 0, version: '', durations: [] },
      store: {
        ...{ kind: 'redis', clockOffsetMs: 0, serversAway: sinceMs === undefined ? 0 : 1 },
        ...(sinceMs !== undefined && { unreachableSince: new Date(sinceMs).toISOString() }),
      },
    },
  } as unknown as LinkedWorker;
}

function setUp() {
  const clock = createManualClock();
  const [marks, activity, log] = [createMarks(clock), createActivity(clock), createRecordedLog()];
  const fleet = { links: [] as LinkedWorker[], gone: new Set<string>() };
  const toWorker = (name: string) => ({
    ...{ node: { id: name, cluster: '', metadata: new Map() }, instance: name, address: 'a:1' },
    ...{ mode: 'sotw', sinceMs: clock.wallMs(), goneAtMs: 0 },
    wantedVersion: () => undefined,
  });
  const watch = watchFleet({
    snapshots: {
      state: () => ({}),
      current: () => undefined,
      groupOf: () => undefined,
      compare: () => undefined,
    } as never,
    workers: {
      list: () => fleet.links.map(({ hello }) => toWorker(hello.nodeId)) as never,
      vanished: () => [...fleet.gone].map(toWorker) as never,
    },
    fleet: { list: () => fleet.links },
    ...{ marks, activity, log, clock },
  });
  const names = (start: number, count: number) =>
    Array.from({ length: count }, (_, index) => link(`w-${start + index}`, {}));
  return { clock, marks, activity, log, fleet, watch, names };
}

const startMs = createManualClock().wallMs();

test('an outage is marked from its beginning to its end, and is in the activity and the log', (t) => {
  const { clock, marks, activity, log, fleet } = setUp();
  const sinceMs = startMs - 2_000;
  fleet.links = [link('a', { sinceMs }), link('b', {})];
  clock.advance(pollMs);
  fleet.links = [link('a', { sinceMs }), link('b', { sinceMs })];
  clock.advance(pollMs);
  clock.advance(pollMs);
  fleet.links = [link('a', {}), link('b', {})];
  clock.advance(2 * pollMs);
  const isOfStore = ({ text }: { readonly text: string }) => text.startsWith('Store');
  t.deepEqual(
    marks
      .read()
      .filter(isOfStore)
      .map(({ kind, atMs, text }) => [kind, atMs - startMs, text]),
    [
      ['outage', -2_000, 'Store unreachable: all requests are allowed, nothing is counted'],
      ['recovered', 5 * pollMs, 'Store unreachable: over, after 32s'],
    ],
  );
  t.deepEqual(
    activity
      .read()
      .map(({ who, what, outcome }) => `${who} ${what} ${outcome}`)
      .slice(0, 2),
    [
      'fleet Store unreachable: over, after 32s seen',
      'fleet Store unreachable: all requests are allowed, nothing is counted seen',
    ],
  );
  t.true(log.lines.join('\n').includes('Fleet: Store unreachable: all requests are allowed'));
});

test('an outage seen by only one check is marked when it is over', (t) => {
  const { clock, marks, fleet } = setUp();
  fleet.links = [link('a', { sinceMs: startMs + 1_000 })];
  clock.advance(pollMs);
  fleet.links = [link('a', {})];
  clock.advance(pollMs);
  const found = marks.read().filter(({ kind }) => kind === 'outage' || kind === 'recovered');
  t.deepEqual(
    found.map(({ atMs, text }) => [atMs - startMs, text]),
    [
      [1_000, 'Store unreachable: all requests are allowed, nothing is counted'],
      [2 * pollMs, 'Store unreachable: over, after 11s'],
    ],
  );
});

test('workers that connect or leave within a minute are one mark, and broken connections have their own', (t) => {
  const { clock, marks, fleet, names } = setUp();
  fleet.links = names(0, 2);
  clock.advance(pollMs);
  fleet.links = names(0, 7);
  clock.advance(pollMs);
  fleet.gone.add('w-6');
  fleet.links = names(1, 5);
  clock.advance(pollMs);
  const texts = () =>
    marks
      .read()
      .filter(({ kind }) => kind === 'workers')
      .map(({ text }) => text);
  t.deepEqual(texts(), [
    '7 workers connected: w-0, w-1, w-2, w-3, w-4, ...',
    'Worker w-6 lost: the connection broke',
    'Worker w-0 left',
  ]);
  clock.advance(60_000);
  fleet.links = names(1, 6);
  clock.advance(pollMs);
  t.is(texts().at(-1), 'Worker w-6 connected');
});

test('control planes that answer or stop answering, and the start of this one, are marked once', (t) => {
  const { marks, watch } = setUp();
  for (const error of [undefined, 'HTTP 503', 'timeout', undefined])
    watch.noteAnswers([{ url: 'http://b', error }]);
  t.deepEqual(
    marks.read().map(({ text }) => text),
    [
      'This control plane started',
      'Control plane http://b does not answer: HTTP 503',
      'Control plane http://b answers again',
    ],
  );
});
