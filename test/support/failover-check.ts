// Checks a load during which a master was killed and its replica took over: errors only in the gap, a short gap, and no
// hit counted twice.
import type { ExecutionContext } from 'ava';
import { eventually } from './eventually.ts';
import type { RedisServer } from './redis-server.ts';
import { type LoadResult, loadPerSecond, type StoreLoad } from './steady-load.ts';

export interface Failover {
  /** When the master was about to be stopped and killed; on performance.now(), like the others. */
  readonly awayMs: number;
  /** When its process had ended. */
  readonly goneMs: number;
  /** When the successor was first known. */
  readonly announcedMs: number;
}

export interface FailoverCounters {
  /** The key that a request of the load counts. */
  readonly keyOf: (index: number) => string;
  /** What the replica had before the kill. */
  readonly replicated: ReadonlyMap<string, number>;
  /** Reads from the current master. */
  readonly read: (key: string) => Promise<number>;
}

/** From the announcement until decisions on every key succeed. */
const gapMs = 30_000;
const settledMs = ({ startedMs, tookMs }: LoadResult) => startedMs + tookMs;

/** The counters of the master, once its replica has them. */
export async function readReplicated(
  master: RedisServer,
  replica: RedisServer,
  keys: readonly string[],
): Promise<Map<string, number>> {
  const counters = new Map<string, number>();
  for (const key of keys) counters.set(key, Number(await master.command('GET', key)));
  const offset = await readOffset(master, 'master_repl_offset');
  await eventually(
    'the replica has it',
    async () => (await readOffset(replica, 'slave_repl_offset')) >= offset,
  );
  return counters;
}

async function readOffset(server: RedisServer, name: string): Promise<number> {
  const info = String(await server.command('INFO', 'replication'));
  return Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
}

/** Whether a decision on each of the keys has succeeded after the failover. */
export function isOver(
  { results }: StoreLoad,
  { goneMs }: Failover,
  { keyOf, replicated }: FailoverCounters,
): boolean {
  const served = new Set<string>();
  for (const { error, startedMs, index } of results)
    if (error === undefined && startedMs > goneMs) served.add(keyOf(index));
  return [...replicated.keys()].every((key) => served.has(key));
}

/** Call after the load has been stopped. */
export async function checkFailover(
  t: ExecutionContext,
  { results, worstLagMs }: StoreLoad,
  { awayMs, goneMs, announcedMs }: Failover,
  { keyOf, replicated, read }: FailoverCounters,
): Promise<void> {
  let recoveredMs = 0;
  let answered = 0;
  let counted = 0;
  let lost = 0;
  for (const [key, passedOn] of replicated) {
    const ofKey = results.filter(({ index }) => keyOf(index) === key);
    const good = ofKey.filter(({ error }) => error === undefined);
    const goodAfter = good.filter(({ startedMs }) => startedMs > goneMs);
    recoveredMs = Math.max(recoveredMs, Math.min(...goodAfter.map(settledMs)));
    const counter = await read(key);
    answered += good.length;
    counted += counter;
    lost += Math.max(0, good.length - counter);
    // A master answers before its replica has the hit, so hits that it had not passed on are lost with it. Hits from
    // before the kill and those that the successor answered are not.
    const passed = passedOn + goodAfter.length;
    t.true(passed <= counter, `${key}: ${passed} safe, ${counter} counted`);
    // Once the master is gone, a failed hit has reached no server. Before, it may have.
    const uncertain = ofKey.filter(
      ({ error, startedMs }) =>
        error && (startedMs < goneMs || error.message.includes('no answer before')),
    );
    const most = good.length + uncertain.length;
    t.true(counter <= most && most <= ofKey.length, `${key}: ${counter} counted, at most ${most}`);
    // Each of them saw a counter that no other saw.
    t.is(new Set(goodAfter.map(({ after }) => after[0])).size, goodAfter.length, key);
  }
  const errors = results.filter(({ error }) => error !== undefined);
  for (const failed of errors) {
    const isInGap = settledMs(failed) >= awayMs && failed.startedMs <= recoveredMs;
    t.true(isInGap, failed.error?.message);
  }
  const sentBefore = (ms: number) => errors.filter(({ startedMs }) => startedMs < ms).length;
  const inFlight = sentBefore(goneMs);
  t.true(inFlight > 0, 'the master died with hits that it was sent');
  // The first of them may have been due while the test itself was stalled.
  const sendingMs = recoveredMs - awayMs + worstLagMs;
  const duringGap = Math.ceil((sendingMs / 1000) * loadPerSecond) + 1;
  t.true(
    errors.length <= sentBefore(awayMs) + duringGap,
    `${errors.length} errors, ${duringGap} due`,
  );
  const text = (ms: number) => `${Math.round(ms)} ms`;
  t.log(
    `${results.length} sent at ${loadPerSecond}/s, ${answered} answered, ${counted} counted, ` +
      `${lost} lost with the master, ${errors.length} errors (${inFlight} in flight at the kill); ` +
      `announced after ${text(announcedMs - awayMs)}, all keys again ${text(recoveredMs - announcedMs)} ` +
      `after that; worst lag of the test ${text(worstLagMs)}`,
  );
  t.true(recoveredMs - announcedMs <= gapMs + worstLagMs, text(recoveredMs - announcedMs));
}
