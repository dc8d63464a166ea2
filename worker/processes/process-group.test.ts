import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import { eventually } from '../../test/support/eventually.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createHealth } from '../health.ts';
import { createRegistry } from '../metrics/registry.ts';
import type { AcceptedRules } from '../serving.ts';
import type { ProcessListener } from './fork-process.ts';
import type { FromProcess, ToProcess } from './message.ts';
import { ProcessGroup } from './process-group.ts';
import { RulesReceiver } from './shared-documents.ts';

const addresses = {
  http: { text: '127.0.0.1:1', port: 1 },
  grpc: { text: '127.0.0.1:2', port: 2 },
};
const silentLimitMs = 30_000;

/** A process that exists only in this test. */
interface FakeProcess {
  readonly pid: number;
  /** The messages that the group sent it. */
  readonly received: ToProcess[];
  readonly isKilled: () => boolean;
  report(message: FromProcess): void;
  end(how: string): void;
}

function setUp(count = 2) {
  const log = createRecordedLog();
  const clock = createManualClock();
  const metrics = createRegistry({ runtimeNamesMax: 10, log });
  const health = createHealth({ requireConfig: false, isShared: true });
  const processes: FakeProcess[] = [];
  const unmatched: string[] = [];
  const fork = ({ onMessage, onGone }: ProcessListener) => {
    const received: ToProcess[] = [];
    let isKilled = false;
    const pid = 100 + processes.length;
    processes.push({ pid, received, isKilled: () => isKilled, report: onMessage, end: onGone });
    return {
      pid,
      send: async (message: ToProcess) => void received.push(message),
      kill() {
        isKilled = true;
      },
    };
  };
  const group = new ProcessGroup({
    count,
    environment: { PORT: '1' },
    fork,
    health,
    metrics,
    onUnmatched: ({ domain }) => void unmatched.push(domain),
    onLimited() {},
    onRecorded() {},
    log,
    clock,
  });
  const stopping = new AbortController();
  const { signal } = stopping;
  const process = (index: number): FakeProcess => {
    const found = processes[index];
    if (found === undefined) throw new Error(`there is no process ${index}`);
    return found;
  };
  /** Starts all processes until they serve. */
  const startAll = async () => {
    const connected = group.connect(signal);
    process(0).report({ kind: 'connected' });
    await turn();
    for (const one of processes.slice(1)) one.report({ kind: 'connected' });
    await connected;
    const listening = group.listen(signal);
    process(0).report({ kind: 'listening', addresses });
    await turn();
    for (const one of processes.slice(1)) one.report({ kind: 'listening', addresses });
    return listening;
  };
  return {
    log,
    clock,
    health,
    metrics,
    unmatched,
    processes,
    group,
    stopping,
    signal,
    process,
    startAll,
  };
}

/** Waits until settled promises had their effect. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The kinds of the messages, without the pieces of documents. */
function kinds({ received }: FakeProcess): string {
  return received.flatMap(({ kind }) => (kind === 'document' ? [] : kind)).join(' ');
}

/** Rules are sent in pieces, with turns of the event loop between them. */
async function untilKinds(process: FakeProcess, wanted: string): Promise<void> {
  await eventually(`${wanted}, not ${kinds(process)}`, () => kinds(process) === wanted);
}

function rulesOf(domain: string): AcceptedRules {
  const document = { file: domain, domain, position: undefined, descriptors: [] };
  return { ruleSet: undefined as never, documents: [document], atMs: 0 };
}

function domainsReceived({ received }: FakeProcess): string[] {
  const receiver = new RulesReceiver();
  return received.flatMap((message) => {
    if (message.kind === 'document') receiver.receiveDocument(message);
    if (message.kind !== 'rules') return [];
    return receiver.receiveRules(message).map(({ domain }) => domain);
  });
}

test('the first process starts first and logs for all, then the others start and listen', async (t) => {
  const { group, signal, process, processes } = setUp(3);
  const connected = group.connect(signal);
  t.is(processes.length, 3, 'all are loaded at once');
  t.is(kinds(process(0)), 'start health');
  t.is(kinds(process(1)), '');
  process(0).report({ kind: 'connected' });
  await turn();
  t.is(kinds(process(1)), 'start health');
  process(1).report({ kind: 'connected' });
  process(2).report({ kind: 'connected' });
  await connected;

  group.useRules(rulesOf('d'));
  const listening = group.listen(signal);
  t.is(kinds(process(0)), 'start health', 'it has no rules yet');
  await untilKinds(process(0), 'start health rules listen');
  await untilKinds(process(1), 'start health rules');
  process(0).report({ kind: 'listening', addresses });
  await untilKinds(process(1), 'start health rules listen');
  process(1).report({ kind: 'listening', addresses });
  process(2).report({ kind: 'listening', addresses });
  t.deepEqual(await listening, addresses);
  t.deepEqual(
    [process(0), process(1)].map(({ received }) => received[0]),
    [
      { kind: 'start', environment: { PORT: '1' }, number: 1, logsForAll: true },
      { kind: 'start', environment: { PORT: '1' }, number: 2, logsForAll: false },
    ],
  );
  t.deepEqual(
    [process(0), process(1)].map(({ received }) => received.at(-1)),
    [
      { kind: 'listen', hasListened: false },
      { kind: 'listen', hasListened: true },
    ],
  );
});

test('a process that ends before it serves fails the start, with its own message if it has one', async (t) => {
  const first = setUp();
  const connected = first.group.connect(first.signal);
  first.process(0).report({ kind: 'failed', message: 'cannot reach the store' });
  first.process(0).end('ended with exit code 1');
  await t.throwsAsync(connected, { instanceOf: AppError, message: 'cannot reach the store' });

  const { group, signal, process } = setUp();
  const message = 'process 2 was ended by SIGKILL before it could serve';
  const failed = t.throwsAsync(group.connect(signal), { instanceOf: AppError, message });
  process(0).report({ kind: 'connected' });
  process(1).end('was ended by SIGKILL');
  await failed;
});

test('the start is aborted by its signal', async (t) => {
  const { group, stopping, signal } = setUp();
  const connected = group.connect(signal);
  stopping.abort(new Error('stopping'));
  await t.throwsAsync(connected, { message: 'stopping' });
});

test('a process that ends is replaced, with growing delays, and receives the rules before it listens', async (t) => {
  const { group, clock, log, process, processes, startAll } = setUp();
  await startAll();
  group.useRules(rulesOf('old'));
  group.useRules(rulesOf('new'));
  await untilKinds(process(0), 'start health listen rules rules');
  t.deepEqual(domainsReceived(process(0)), ['old', 'new']);
  for (const delayMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
    const before = processes.length;
    processes.at(-1)?.end('was ended by SIGKILL');
    t.regex(
      log.lines.at(-1) ?? '',
      new RegExp(`^error Process 2 \\(pid \\d+\\) was ended by SIGKILL; .* in ${delayMs}ms$`),
    );
    clock.advance(delayMs - 1);
    t.is(processes.length, before);
    clock.advance(1);
    t.is(processes.length, before + 1);
  }
  const last = process(processes.length - 1);
  last.report({ kind: 'connected' });
  t.is(kinds(last), 'start health', 'it has no rules yet');
  await untilKinds(last, 'start health rules listen');
  t.deepEqual(domainsReceived(last), ['new']);
  t.deepEqual(last.received.at(-1), { kind: 'listen', hasListened: true });
  last.report({ kind: 'listening', addresses });
  t.is(log.lines.at(-1), `notice Process 2 serves again (pid ${last.pid})`);
  t.regex(group.describe().join('\n'), /process 2: pid \d+, serves since .*, replaced 8 times/);

  for (let second = 0; second < 30; second++) {
    clock.advance(1_000);
    for (const one of [process(0), last]) one.report({ kind: 'store', healthy: true });
  }
  last.end('ended with exit code 1');
  t.regex(log.lines.at(-1) ?? '', /in 100ms$/, 'it served long enough');
});

test('the reason that a process reports for its end is logged, and it is replaced', async (t) => {
  const { log, process, startAll } = setUp();
  await startAll();
  process(1).report({ kind: 'failed', message: 'Error: a defect' });
  process(1).end('ended with exit code 1');
  t.is(
    log.lines.at(-1),
    'error Process 2 (pid 101) failed: Error: a defect; another replaces it in 100ms',
  );
});

test('a process that falls silent is ended', async (t) => {
  const { clock, log, process, startAll } = setUp();
  await startAll();
  for (let passed = 0; passed < silentLimitMs - 1_000; passed += 1_000) {
    clock.advance(1_000);
    process(0).report({ kind: 'store', healthy: true });
  }
  t.false(process(1).isKilled());
  clock.advance(1_000);
  t.true(process(1).isKilled());
  t.false(process(0).isKilled());
  t.is(log.lines.at(-1), 'error Process 2 (pid 101) has not reported for 30s');
});

test('the worker is unhealthy while no process serves or one has lost its store, and all are notified', async (t) => {
  const { clock, health, process, processes, startAll } = setUp();
  await startAll();
  t.true(health.healthy);
  process(1).report({ kind: 'store', healthy: false });
  t.false(health.healthy);
  t.deepEqual(process(0).received.at(-1), { kind: 'health', healthy: false });
  process(1).report({ kind: 'store', healthy: true });
  t.deepEqual(process(0).received.at(-1), { kind: 'health', healthy: true });

  process(1).report({ kind: 'store', healthy: false });
  process(1).end('was ended by SIGKILL');
  t.true(health.healthy, 'what is gone has lost nothing');
  process(0).end('was ended by SIGKILL');
  t.deepEqual(health.components().get('processes'), false);
  clock.advance(100);
  const [, , third] = processes;
  t.deepEqual(third?.received.at(-1), { kind: 'health', healthy: false });
  third?.report({ kind: 'connected' });
  third?.report({ kind: 'listening', addresses });
  t.true(health.healthy);
  t.deepEqual(third?.received.at(-1), { kind: 'health', healthy: true });
});

test('counts and samples of a process stay when it ends, its gauges do not', async (t) => {
  const { metrics, unmatched, process, startAll } = setUp();
  await startAll();
  process(1).report({
    kind: 'report',
    description: ['counters: connected'],
    unmatched: [{ domain: 'd', entries: [], isCut: false, atSeconds: 1 }],
    limited: undefined,
    recorded: undefined,
    statistics: {
      newCounters: [{ kind: 'name', name: 'c' }],
      indexes: Uint32Array.of(0),
      increases: Float64Array.of(3),
      newGauges: ['g'],
      gauges: Float64Array.of(4),
      timers: [],
      decisionDuration: new Float64Array(),
      storeCalls: [],
    },
  });
  t.deepEqual(
    ['c', 'g'].map((name) => metrics.snapshot().get(name)),
    [3, 4],
  );
  t.deepEqual(unmatched, ['d']);
  process(1).end('was ended by SIGKILL');
  t.deepEqual(
    ['c', 'g'].map((name) => metrics.snapshot().get(name)),
    [3, 0],
  );
});

test('the debug port and two metrics report the processes', async (t) => {
  const { clock, group, metrics, process, startAll } = setUp();
  t.regex(group.describe().join('\n'), /^processes: 0 of 2 serve\n {2}process 1: not started yet/);
  await startAll();
  process(1).end('was ended by SIGTERM');
  const since = new Date(clock.wallMs()).toISOString();
  t.deepEqual(group.describe(), [
    'processes: 1 of 2 serve',
    `  process 1: pid 100, serves since ${since}`,
    `  process 2: ended at ${since} (pid 101 was ended by SIGTERM), replaced 1 time`,
  ]);
  t.is(metrics.snapshot().get('ratelimit.processes.serving'), 1);
  t.is(metrics.snapshot().get('ratelimit.processes.replaced'), 1);
});

test('a stop asks all processes, waits for them, and replaces none', async (t) => {
  const { clock, group, process, processes, startAll } = setUp(3);
  await startAll();
  process(2).end('was ended by SIGKILL');
  let isStopped = false;
  const stopped = group.stop(10_000).then(() => {
    isStopped = true;
  });
  t.deepEqual(process(0).received.at(-1), { kind: 'stop', graceMs: 10_000 });
  t.deepEqual(process(1).received.at(-1), { kind: 'stop', graceMs: 10_000 });
  process(0).end('ended with exit code 0');
  await turn();
  t.false(isStopped);
  t.regex(group.describe().join(), /process 1: ended at \S+ \(pid 100 ended with exit code 0\)/);
  clock.advance(13_999);
  t.false(process(1).isKilled());
  clock.advance(1);
  t.true(process(1).isKilled(), 'what does not end is ended');
  process(1).end('was ended by SIGKILL');
  await stopped;
  clock.advance(60_000);
  t.is(processes.length, 3);
  t.is(clock.pending, 0, 'nothing is left over');
});
