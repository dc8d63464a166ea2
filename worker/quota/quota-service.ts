// The quota service: callers report for each bucket what they admitted, and are assigned what they may admit by
// themselves. Rules and counters are those of decisions (behaviour: quota-service).
//
// A bucket is a descriptor that a caller reports. A Member is one caller's bucket; it has a Stake in each limit that
// applies to it. A Pool is one counter of a limit, divided into a Share for each of its members. If several servers
// count on one store, a pool divides what its Lease holds. A pool is paced if its members are assigned rates; for
// limits of long units they are granted amounts.
import type { Clock } from '../../shared/clock.ts';
import { createWindows, toCounterKey } from '../../shared/counting/counter-key.ts';
import { runInSlices } from '../../shared/in-slices.ts';
import type { Log } from '../../shared/log.ts';
import { owned } from '../../shared/owned-text.ts';
import { createRepeatedLog, type RepeatedLog } from '../../shared/repeated-log.ts';
import type { Entry, Match } from '../../shared/rules/rule.ts';
import { type CounterStore, type Hit, toMapKey } from '../counters/store.ts';
import { noStats } from '../decision/counter-access.ts';
import { createPrepareHits, type RuleHit } from '../decision/hit.ts';
import type { CurrentRules, DecisionOptions } from '../decision/should-rate-limit.ts';
import type { UnmatchedSampler } from '../decision/unmatched-sampler.ts';
import type { StreamCaller, StreamHandler } from '../grpc/method.ts';
import type { Metrics } from '../metrics.ts';
import type { Span, Tracer } from '../tracing/tracer.ts';
import { Lease } from './lease.ts';
import type { Member, Stake } from './member.ts';
import type { BucketUsage } from './messages.ts';
import { Pool, Share } from './pool.ts';
import { idleReportsMax, QuotaStream, type QuotaStreamHost } from './quota-stream.ts';

export interface QuotaDeps {
  /** Read at each report. */
  readonly rules: CurrentRules;
  readonly store: CounterStore;
  /** Whether several servers count in the store, and therefore divide each limit. */
  readonly isShared: boolean;
  readonly unmatched: UnmatchedSampler;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  readonly options: DecisionOptions;
  /** Undefined when traces are off. */
  readonly tracer: Tracer | undefined;
}

const secondMs = 1_000;
/** How often the counter of a pool is read in which neither callers nor other servers have demand. */
const idleReadMs = 10_000;
const activeForMs = 10_000;
/** The pause before a pool that was just planned is planned again. */
const retryPlanMs = 50;
/** The most bookings of a lease after one count: to get more, to return too much, and to leave some for others. */
const mostBookings = 3;
const noEntries: readonly Entry[] = [];

type Counter = Pick<Pool, 'domain' | 'entries' | 'match'>;

export class QuotaService implements QuotaStreamHost {
  readonly #deps: QuotaDeps;
  readonly #prepare: ReturnType<typeof createPrepareHits>['prepare'];
  readonly #windowAt: ReturnType<typeof createWindows>;
  readonly #streams = new Set<QuotaStream>();
  readonly #pools = new Map<string, Pool>();
  /** Pools to be planned. */
  #dirty = new Set<Pool>();
  /** Pools that were just planned or are being counted: to be planned again after a pause. */
  readonly #early = new Set<Pool>();
  /** Streams with waiting reports. */
  readonly #toDrain = new Set<QuotaStream>();
  readonly #toFlush = new Set<QuotaStream>();
  #isScheduled = false;
  #isClosed = false;
  #cancelTick: (() => void) | undefined;
  #cancelRetry: (() => void) | undefined;
  readonly #ends = new Set<() => void>();
  readonly #ambiguities: RepeatedLog;
  readonly #storeFailures: RepeatedLog;
  readonly #counters;
  buckets = 0;
  characters = 0;

  constructor(deps: QuotaDeps) {
    this.#deps = deps;
    const { metrics, options, clock, log } = deps;
    this.#windowAt = createWindows(options);
    this.#prepare = createPrepareHits({
      overLimitCache: undefined,
      metrics: { ruleStats: () => noStats },
      trail: undefined,
      windowAt: this.#windowAt,
      cacheKeyPrefix: options.cacheKeyPrefix,
      storesLongKeys: options.storesLongKeys,
      calendarMonths: options.calendarMonths,
    }).prepare;
    this.#ambiguities = createRepeatedLog({ clock, write: log.warning, again: 'when-changed' });
    this.#storeFailures = createRepeatedLog({ clock, write: log.warning, intervalMs: 5_000 });
    const counter = (name: string) => metrics.counter(`ratelimit.quota.${name}`);
    this.#counters = {
      reports: counter('reports'),
      assignments: counter('assignments'),
      abandoned: counter('abandoned'),
      refused: counter('refused'),
      storeErrors: counter('store_error'),
    };
    const streams = metrics.gauge('ratelimit.quota.streams');
    const buckets = metrics.gauge('ratelimit.quota.buckets');
    metrics.beforeReading(() => {
      streams.set(this.#streams.size);
      buckets.set(this.buckets);
    });
    this.#tickSoon();
  }

  open(caller: StreamCaller): StreamHandler {
    const stream = new QuotaStream(caller, this);
    this.#streams.add(stream);
    return stream;
  }

  describe(): readonly string[] {
    return [
      `quota service: ${this.#streams.size} streams report ${this.buckets} buckets under ${this.#pools.size} counters`,
    ];
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTick?.();
    this.#cancelRetry?.();
    for (const end of this.#ends) end();
    for (const pool of this.#pools.values()) if (!pool.isCounting) this.#leave(pool, false);
    this.#ambiguities.flush();
    this.#storeFailures.flush();
  }

  // The following methods are called by a stream.

  nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  startSpan(buckets: number): Span | undefined {
    return this.#deps.tracer?.roots()?.startSpan('ratelimit', 'Quota Report', { buckets });
  }

  added({ characters }: Member): void {
    this.buckets++;
    this.characters += characters;
  }

  reported(member: Member, { allowed, denied, elapsedSeconds }: BucketUsage): void {
    this.#counters.reports.add(1);
    const [passed, refused] = [Number(allowed), Number(denied)];
    const asked = passed + refused;
    member.idleReports = asked === 0 ? member.idleReports + 1 : 0;
    if (member.ruleSet !== this.#deps.rules.current || member.ruleSet === undefined) {
      this.#findLimits(member);
    }
    if (member.stakes.length === 0) this.#countUnmatched(member, asked);
    const nowMs = this.nowMs();
    const report = { allowed: passed, asked, reportedMs: elapsedSeconds * secondMs };
    for (const { pool, share, stats, match } of member.stakes) {
      const over = this.#isShadow(match) ? pool.toOver(share, passed, nowMs) : 0;
      pool.report(share, report, nowMs);
      stats.totalHits.add(asked);
      stats.withinLimit.add(passed - over);
      stats.overLimit.add(refused + over);
      stats.shadowMode.add(over);
      this.#plan(pool);
    }
    // A member that has used part of a granted amount is answered after the part is counted.
    if (member.stakes.every(({ pool }) => pool.isPaced || passed === 0)) member.stream.put(member);
    if (member.idleReports === idleReportsMax) this.#counters.abandoned.add(1);
  }

  removed(member: Member): void {
    this.buckets--;
    this.characters -= member.characters;
    this.#release(member);
  }

  countSent(count: number): void {
    this.#counters.assignments.add(count);
  }

  refused(): void {
    this.#counters.refused.add(1);
  }

  drainSoon(stream: QuotaStream): void {
    this.#toDrain.add(stream);
    this.#schedule();
  }

  flushSoon(stream: QuotaStream): void {
    this.#toFlush.add(stream);
    this.#schedule();
  }

  /** The stream's shares become free a second later: until then the caller may reconnect. */
  ended(stream: QuotaStream): void {
    this.#streams.delete(stream);
    this.#toDrain.delete(stream);
    this.#toFlush.delete(stream);
    const end = () => {
      this.#ends.delete(cancel);
      for (const member of stream.members) this.removed(member);
    };
    const cancel = this.#deps.clock.after(secondMs, end);
    this.#ends.add(cancel);
    if (this.#isClosed) cancel();
  }

  // The following methods find the limits of a bucket.

  #findLimits(member: Member): void {
    const { rules, options } = this.#deps;
    this.#release(member);
    member.ruleSet = rules.current;
    const { domain } = member.stream;
    const domainRules = rules.current?.domains.get(domain);
    const nesting = domainRules?.nest(member.entries);
    member.ordered = nesting?.entries ?? noEntries;
    const match = nesting && domainRules?.match(nesting.entries);
    if (nesting?.isAmbiguous && match !== undefined) {
      this.#ambiguities.report(
        `domain ${domain}: a bucket with ${member.entries.map(({ key }) => key).join(', ')} matches several rules; ${match.metricKey} is the first and applies`,
        match.metricKey,
      );
    }
    const limits = match === undefined || match.limit.unlimited ? [] : (match.parts ?? [match]);
    member.stakes = limits.map((part) => this.#stake(member, part));
    const isFree = match === undefined || match.limit.unlimited;
    const isShadow = match !== undefined && (options.shadowMode || match.limit.shadowMode);
    member.fixed = isFree || isShadow ? 'allow_all' : undefined;
  }

  #stake(member: Member, match: Match): Stake {
    const { options, metrics } = this.#deps;
    const { domain } = member.stream;
    const prefix = options.cacheKeyPrefix;
    const id = toCounterKey(prefix, domain, member.ordered, match.sharedValues, match.metricKey);
    const { requestsPerUnit, unit, unitMultiplier, algorithm, burst } = match.limit;
    const shape = [requestsPerUnit, unit, unitMultiplier, algorithm, burst].join(' ');
    const key = `${toMapKey(id)} ${shape}`;
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      const counter = { domain, entries: member.ordered, match };
      const lease = this.#deps.isShared ? this.#toLease(counter) : undefined;
      pool = new Pool({ key: owned(key), ...counter, lease });
      this.#pools.set(pool.key, pool);
    }
    const share = new Share(member, this.nowMs());
    pool.add(share);
    const stats = metrics.ruleStats(match.metricKey, match.metricKeyIsStatic, match.listedAs);
    return { match, pool, share, stats };
  }

  /** Identified by the counter of the limit's first window, which represents all windows, and by their length. */
  #toLease(counter: Counter): Lease {
    const { key, windowSeconds } = this.#toHit(counter, 0, 0);
    return new Lease(this.#deps.options.cacheKeyPrefix, `${key} ${windowSeconds}`);
  }

  #isShadow({ limit }: Match): boolean {
    return this.#deps.options.shadowMode || limit.shadowMode;
  }

  #release(member: Member): void {
    for (const { pool, share } of member.stakes) {
      pool.remove(share);
      if (pool.size === 0) {
        this.#pools.delete(pool.key);
        if (!pool.isCounting) this.#leave(pool, true);
      } else this.#plan(pool);
    }
    member.stakes = [];
  }

  #countUnmatched(member: Member, hits: number): void {
    if (hits === 0 || member.ordered.length > 0) return;
    const { rules, unmatched, metrics, clock } = this.#deps;
    const { domain } = member.stream;
    const nowSeconds = Math.floor(clock.wallMs() / secondMs);
    const domainRules = rules.current?.domains.get(domain);
    if (domainRules !== undefined) unmatched.noMatch(domainRules, member.entries, nowSeconds);
    else if (rules.current !== undefined) {
      metrics.unknownDomain(domain).add(1);
      const descriptor = { limit: undefined, hitsAddend: 0, isNegativeHits: false };
      const descriptors = [{ entries: member.entries, ...descriptor }];
      unmatched.unknownDomain({ domain, descriptors, hitsAddend: 0 }, nowSeconds);
    }
  }

  // The following methods plan, and send assignments.

  #plan(pool: Pool): void {
    this.#dirty.add(pool);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    setImmediate(() => void runInSlices(this.#work()));
  }

  /** Processes reports, plans, and then sends, for all streams in turn; decisions continue meanwhile. */
  *#work(): Generator<void, void> {
    while (this.#toDrain.size + this.#dirty.size + this.#toFlush.size > 0) {
      for (const stream of this.#toDrain) {
        if (this.#isClosed) return;
        if (!(yield* stream.drain())) this.#toDrain.delete(stream);
      }
      yield* this.#planAll();
      const streams = [...this.#toFlush];
      this.#toFlush.clear();
      for (const stream of streams) yield* stream.flush();
    }
    this.#isScheduled = false;
  }

  *#planAll(): Generator<void, void> {
    const nowMs = this.nowMs();
    const pools = this.#dirty;
    this.#dirty = new Set();
    for (const pool of pools) {
      if (this.#isClosed) return;
      if (pool.isCounting || pool.waits(nowMs)) this.#early.add(pool);
      else if (pool.isPaced && pool.lease?.isLeased !== false && !pool.isDue)
        pool.plan(this.nowMs());
      else this.#count(pool);
      yield;
    }
    if (this.#early.size > 0) this.#retrySoon();
  }

  #retrySoon(): void {
    this.#cancelRetry ??= this.#deps.clock.after(retryPlanMs, () => {
      this.#cancelRetry = undefined;
      for (const pool of this.#early) this.#plan(pool);
      this.#early.clear();
    });
  }

  // The following methods count.

  #tickSoon(): void {
    const { clock } = this.#deps;
    const waitMs = secondMs - (clock.wallMs() % secondMs) + 1;
    this.#cancelTick = clock.after(waitMs, () => {
      void runInSlices(this.#tick()).then(() => {
        if (!this.#isClosed) this.#tickSoon();
      });
    });
  }

  /** Runs at the start of each second. */
  *#tick(): Generator<void, void> {
    for (const stream of this.#streams) stream.check();
    for (const pool of this.#pools.values()) {
      if (this.#isClosed) return;
      const nowMs = this.nowMs();
      const isActive = this.#deps.isShared || nowMs - pool.activeMs < activeForMs;
      const isDue = nowMs - pool.answeredMs >= (isActive ? secondMs / 2 : idleReadMs);
      if (isDue || this.#toWindowStart(pool) !== pool.windowStart) {
        pool.isDue = true;
        if (pool.isCounting) this.#early.add(pool);
        else this.#count(pool);
      }
      yield;
    }
    if (this.#early.size > 0) this.#retrySoon();
  }

  #toWindowStart({ match }: Pool): number {
    const { limiter, unit = 'second', unitMultiplier } = match.limit;
    if (limiter !== undefined) return 0;
    return this.#windowAt(unit, unitMultiplier, this.#nowSeconds()).start;
  }

  #nowSeconds(): number {
    return Math.floor(this.#deps.clock.wallMs() / secondMs);
  }

  /** Counts admitted requests, reads the total of all servers, and registers the demand of this server. */
  #count(pool: Pool): void {
    const { clock } = this.#deps;
    const nowSeconds = this.#nowSeconds();
    const start = this.#toWindowStart(pool);
    if (start !== pool.windowStart) {
      pool.begin(start, this.nowMs() - (clock.wallMs() - start * secondMs));
    }
    if (pool.size === 0) return;
    const nowMs = this.nowMs();
    if (pool.isDue) pool.countAhead(nowMs, nowMs + secondMs - (clock.wallMs() % secondMs));
    pool.isDue = false;
    const hits = pool.drainUncounted();
    const { lease } = pool;
    const usage = this.#toHit(pool, hits, nowSeconds);
    if (!pool.isPaced) lease?.use(Math.max(0, hits), pool.assigned);
    const leased = lease?.register(nowSeconds, pool.need) ?? [];
    this.#ask(pool, [usage, ...leased], (isCounted) => {
      pool.answeredMs = this.nowMs();
      if (isCounted) {
        pool.used = usage.after;
        lease?.registered(pool.divided);
      } else pool.failed(hits);
      this.#settle(pool, isCounted ? mostBookings : 0);
    });
  }

  #ask(pool: Pool, hits: readonly Hit[], answered: (isCounted: boolean) => void): void {
    const { store, clock, options } = this.#deps;
    pool.isCounting = true;
    store.count({
      hits,
      mode: 'add',
      deadlineMs: clock.monotonicMs() + options.storeTimeoutMs,
      cancelled: false,
      settle: (error) => {
        pool.isCounting = false;
        if (error === undefined) this.#storeFailures.recover();
        else {
          pool.lease?.failed();
          this.#counters.storeErrors.add(1);
          this.#storeFailures.report(
            `the quota service counts in this process alone while the store fails: ${error.message}`,
          );
        }
        answered(error === undefined);
      },
    });
  }

  /**
   * More of the limit is booked before it is assigned; what others may have is returned after it is no longer assigned.
   */
  #settle(pool: Pool, bookings: number): void {
    const { lease } = pool;
    if (this.#isClosed) return;
    if (pool.size === 0) {
      this.#leave(pool, true);
      return;
    }
    if (lease?.wantsMore !== true || bookings === 0) {
      pool.plan(this.nowMs());
      this.#schedule();
      lease?.retain(pool.assigned);
    }
    if (lease !== undefined && bookings > 0) this.#book(pool, lease, bookings);
  }

  #book(pool: Pool, lease: Lease, bookings: number): void {
    const nowSeconds = this.#nowSeconds();
    if (pool.size === 0 || (!lease.wantsMore && lease.isBooked(nowSeconds))) return;
    // A server first counts usage and then releases it from its lease: reading in the opposite order misses nothing.
    const usage = this.#toHit(pool, 0, nowSeconds);
    this.#ask(pool, [...lease.book(nowSeconds), usage], (isCounted) => {
      if (isCounted) {
        pool.used = usage.after;
        lease.booked(pool.divided.total);
      }
      this.#settle(pool, isCounted ? bookings - 1 : 0);
    });
  }

  /** Releases this server's part of the limit for others. */
  #leave(pool: Pool, isAtOnce: boolean): void {
    const hits = pool.lease?.leave(this.#nowSeconds(), isAtOnce) ?? [];
    if (hits.length > 0) this.#ask(pool, hits, () => {});
  }

  #toHit({ domain, entries, match }: Counter, hits: number, nowSeconds: number): RuleHit {
    const descriptor = { limit: undefined, hitsAddend: Math.abs(hits), isNegativeHits: hits < 0 };
    const descriptors = [{ entries, ...descriptor }];
    const request = { domain, descriptors, hitsAddend: 0 };
    return this.#prepare({ request, receivedMs: this.nowMs() }, 0, match, nowSeconds);
  }
}
