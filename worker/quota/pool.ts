// One counter of a limit, and the shares of it that callers have: how much each may let through by itself until it
// hears more (behaviour: quota-service). Pure: it counts nothing and sends nothing.

import { windowSecondsOf } from '../../shared/rules/limit-shape.ts';
import type { Entry, Match } from '../../shared/rules/rule.ts';
import type { Divided, Lease } from './lease.ts';
import { toShares, toWholeShares } from './shares.ts';
import { type Strategy, toGrantedBucket, toPacedBucket } from './strategy.ts';

/** Up to this length of its window a limit is shared as a rate, since several windows pass between two reports. */
export const longestPacedSeconds = 10;
/** A share that is planned anew stays as it is where it differs by less: each new bucket is full at first. */
const tolerance = 0.1;
/** A caller's bucket is full whenever it is told another rate, so it holds half a window's requests. */
const windowDepth = 0.5;
/** A rate is of no less time than this. */
const shortestRateMs = 200;
/** So that planning costs a pool with many callers no more than one with few. */
const planMsPerShare = 2;
const longestPlanMs = 500;

/** What a store counts at once, whatever callers report. */
const mostHits = 2 ** 53;

/** Who has a share. */
export interface Holder {
  /** What it is assigned has changed. */
  news(): void;
}

/** What one caller has of a pool. */
export class Share {
  readonly holder: Holder;
  /** A paced limit's: requests in each window. Else: requests it may still let through, as of its last report. */
  amount = 0;
  /** Requests a second, let through or not; undefined until it has reported those of a time. */
  askedPerSecond: number | undefined;
  /** When it reported last, monotonic. */
  reportedMs: number;
  /** Requests since `askedSinceMs` that are not in the rate yet. */
  #asked = 0;
  #askedSinceMs: number;
  /** Requests that it is expected to have let through since its last report, which are counted already. */
  ahead = 0;
  /** Up to when what it lets through is counted, monotonic. */
  countedMs: number;
  /** The granted amount at its assignment, or at the last report: the caller has at most that. */
  granted = 0;
  /** What it may have let through, unreported, when it was last told another amount. */
  spentBefore = 0;
  /** What it may have let through, unreported, in windows that are over. */
  carried = 0;
  /** Since the last plan. */
  hasReported = false;
  /** Whether the amount is known. */
  isPlanned = false;
  /** Whether the caller is to be told the amount. */
  isNews = true;
  /** Whether the caller's bucket has to be filled anew. */
  mustRefill = false;

  constructor(holder: Holder, nowMs: number) {
    this.holder = holder;
    this.reportedMs = nowMs;
    this.countedMs = nowMs;
    this.#askedSinceMs = nowMs;
  }

  /** The caller may now let so many through, and may have let `spent` through that it has not reported. */
  grant(amount: number, spent: number): void {
    this.spentBefore += spent;
    this.mustRefill = true;
    this.restrict(amount);
  }

  /** The caller may let no more than so many through; of what it has more is taken back. */
  restrict(amount: number): void {
    this.amount = amount;
    this.granted = amount;
    this.isNews = true;
  }

  /** The caller says how long it has counted: that is used where nothing is known of it, as after a server's start. */
  observe(asked: number, nowMs: number, saidMs: number): void {
    this.hasReported = true;
    this.reportedMs = nowMs;
    this.countedMs = nowMs;
    this.#asked += asked;
    const passedMs = Math.max(
      nowMs - this.#askedSinceMs,
      this.askedPerSecond === undefined ? saidMs : 0,
    );
    if (passedMs < shortestRateMs) return;
    this.askedPerSecond = (this.#asked * 1_000) / passedMs;
    this.#asked = 0;
    this.#askedSinceMs = nowMs;
  }
}

/** What a caller says of the time since its last report. */
export interface Reported {
  /** Requests that it let through. */
  readonly allowed: number;
  /** Requests that were made. */
  readonly asked: number;
  readonly saidMs: number;
}

type PoolOf = Pick<Pool, 'key' | 'domain' | 'entries' | 'match' | 'lease'>;

export class Pool {
  /** The counter's key without its window. */
  readonly key: string;
  readonly match: Match;
  readonly domain: string;
  /** Of a bucket with this counter. */
  readonly entries: readonly Entry[];
  readonly windowSeconds: number;
  readonly isPaced: boolean;
  /** Requests in a window. */
  readonly limit: number;
  /** Of a paced bucket, as a part of what passes in a window. */
  readonly #depth: number;
  readonly #shares = new Set<Share>();
  /** Of this server, where several divide the limit. */
  readonly lease: Lease | undefined;
  /** In the window, by all who count on it. */
  used = 0;
  /** In the window, let through and not yet counted; negative where too many were expected. */
  uncounted = 0;
  /** In the window, sent to a store that failed, which may not have counted them. */
  #doubtful = 0;
  /** Whether a second began since its last count. */
  isDue = false;
  /** When the window began that `used` is of, Unix seconds. */
  windowStart = -1;
  #beganMs = Number.NEGATIVE_INFINITY;
  /** Monotonic. */
  answeredMs = Number.NEGATIVE_INFINITY;
  activeMs = Number.NEGATIVE_INFINITY;
  isCounting = false;
  #plannedMs = Number.NEGATIVE_INFINITY;
  #hasNewCallers = true;

  constructor({ key, domain, entries, match, lease }: PoolOf) {
    const { limiter, requestsPerUnit } = match.limit;
    this.key = key;
    this.domain = domain;
    this.entries = entries;
    this.match = match;
    this.lease = lease;
    this.windowSeconds = windowSecondsOf(match.limit);
    this.isPaced =
      limiter?.algorithm === 'token_bucket' || this.windowSeconds <= longestPacedSeconds;
    this.limit = requestsPerUnit;
    const isBucket = limiter?.algorithm === 'token_bucket';
    this.#depth = isBucket ? limiter.capacity / Math.max(1, limiter.limit) : windowDepth;
  }

  get size(): number {
    return this.#shares.size;
  }

  /** What the callers ask for, each at most the whole limit, as a part of the limit. */
  get need(): number {
    const all = this.limit / this.windowSeconds;
    let sum = 0;
    for (const { askedPerSecond } of this.#shares) sum += Math.min(all, askedPerSecond ?? all);
    return all === 0 ? 0 : sum / all;
  }

  /** What all servers divide. */
  get divided(): Divided {
    return {
      total: this.isPaced ? this.limit : Math.max(0, this.limit - this.used),
      limit: this.limit,
      windows: this.isPaced ? 1 : longestPacedSeconds / this.windowSeconds,
    };
  }

  /** What all may let through. */
  get #left(): number {
    return this.isPaced ? this.limit : Math.max(0, this.limit - this.used - this.uncounted);
  }

  /** What the callers here may let through. */
  get #capacity(): number {
    return this.lease?.toCapacity(this.#left) ?? this.#left;
  }

  /** What the callers may let through by themselves. */
  get assigned(): number {
    let sum = 0;
    for (const { amount, spentBefore } of this.#shares) sum += amount + spentBefore;
    return sum;
  }

  add(share: Share): void {
    this.#shares.add(share);
    this.#hasNewCallers = true;
  }

  remove(share: Share): void {
    this.#shares.delete(share);
    this.#hasNewCallers = true;
  }

  /** How many of these, let through since its last report, are above what the limit has left. */
  toOver({ reportedMs, ahead }: Share, allowed: number, nowMs: number): number {
    const windows = Math.max(1, (nowMs - reportedMs) / 1_000) / this.windowSeconds;
    const left = this.isPaced ? this.limit * windows : this.limit - this.used + ahead;
    return Math.min(allowed, Math.max(0, Math.ceil(allowed - Math.max(0, left))));
  }

  report(share: Share, { allowed, asked, saidMs }: Reported, nowMs: number): void {
    const beforeMs = this.#beganMs - share.reportedMs;
    const passedMs = nowMs - share.reportedMs;
    share.observe(asked, nowMs, saidMs);
    if (asked > 0) this.activeMs = nowMs;
    // Some of it may be from windows that are over: by time, but no more than was assigned then.
    const before = beforeMs > 0 ? Math.floor((allowed * beforeMs) / passedMs) : 0;
    const late = Math.min(share.carried, before);
    const unexpected = Math.min(mostHits, allowed) - late - share.ahead;
    this.uncounted = Math.min(mostHits, this.uncounted + unexpected);
    share.carried = 0;
    share.ahead = 0;
    if (this.isPaced) return;
    const left = Math.max(0, share.amount + share.spentBefore - unexpected);
    share.spentBefore = 0;
    share.restrict(Math.min(share.granted, left));
  }

  /** Until they report, callers are expected to continue as before. What they let through in the time before `nowMs` is
   * counted, or for a rate in the time before `secondEndMs`, so that others who count on the limit find it used. */
  countAhead(nowMs: number, secondEndMs: number): void {
    const untilMs = this.isPaced ? secondEndMs : nowMs;
    for (const share of this.#shares) {
      const passedMs = untilMs - Math.max(share.countedMs, this.#beganMs);
      if (passedMs <= 0) continue;
      share.countedMs = untilMs;
      const rate = this.isPaced ? share.amount / this.windowSeconds : Number.POSITIVE_INFINITY;
      const asked = (Math.min(rate, share.askedPerSecond ?? 0) * passedMs) / 1_000;
      const expected = this.isPaced ? asked : Math.min(share.amount, asked);
      share.ahead += expected;
      this.uncounted += expected;
      if (!this.isPaced) share.amount -= expected;
    }
  }

  /** What is to be counted now, in whole requests; a negative number is to be taken back, of what the store has counted for
   * certain. */
  takeUncounted(): number {
    const hits = this.isPaced ? Math.round(this.uncounted) : Math.ceil(this.uncounted);
    this.uncounted -= hits;
    const settled = Math.min(this.#doubtful, Math.max(0, -hits));
    this.#doubtful -= settled;
    return hits + settled;
  }

  /** The store failed: it is not known whether it has counted these. */
  failed(hits: number): void {
    this.used += hits;
    this.#doubtful += Math.max(0, hits);
  }

  /** A window began: in Unix seconds, and on the monotonic clock. */
  begin(windowStart: number, beganMs: number): void {
    const isFirst = this.windowStart < 0;
    this.windowStart = windowStart;
    this.used = 0;
    if (!this.isPaced) this.lease?.begin(windowStart);
    if (isFirst) return;
    this.#beganMs = beganMs;
    this.uncounted %= 1;
    this.#doubtful = 0;
    for (const share of this.#shares) {
      share.carried += this.isPaced ? mostHits : share.amount + share.spentBefore + share.ahead;
      share.ahead = 0;
      share.spentBefore = 0;
      if (!this.isPaced) share.restrict(0);
    }
  }

  /** Whether it is too early for another plan. */
  waits(nowMs: number): boolean {
    const pauseMs = Math.min(longestPlanMs, this.#shares.size * planMsPerShare);
    return nowMs - this.#plannedMs < pauseMs;
  }

  /** Divides what the limit has left; holders of shares that are news are told. */
  plan(nowMs: number): void {
    this.#plannedMs = nowMs;
    const shares = [...this.#shares];
    if (this.isPaced) this.#planRates(shares);
    else this.#planGrants(shares);
    this.#hasNewCallers = false;
    for (const share of shares) {
      share.isPlanned = true;
      if (share.isNews) share.holder.news();
    }
  }

  #planRates(shares: readonly Share[]): void {
    const capacity = this.#capacity;
    const asked = shares.map(({ askedPerSecond }) =>
      askedPerSecond === undefined ? undefined : askedPerSecond * this.windowSeconds,
    );
    const planned = toShares(capacity, asked);
    const free = capacity - this.assigned;
    const isAnew =
      this.#hasNewCallers ||
      free < -0.001 ||
      free > Math.max(0.5, (capacity * tolerance) / 4) ||
      shares.some(({ amount }, index) => differs(amount, planned[index] ?? 0));
    if (!isAnew) return;
    for (const [index, share] of shares.entries()) {
      share.amount = planned[index] ?? 0;
      share.isNews = true;
    }
  }

  /**
   * What callers may still let through never passes what is left: a share grows by what no other holds, and where its
   * caller has just reported, so that it is known what it holds, or holds next to nothing. New callers alone make others
   * hold less before they report: then what was counted ahead is what they have let through meanwhile. Where nothing is
   * left, as others count on the limit too, all is taken back at once.
   */
  #planGrants(shares: readonly Share[]): void {
    if (this.#left === 0) {
      for (const share of shares) if (share.amount > 0) share.grant(0, share.amount);
    }
    const capacity = this.#capacity;
    const asked = shares.map(({ askedPerSecond }) =>
      askedPerSecond === undefined ? undefined : askedPerSecond * longestPacedSeconds,
    );
    const held = shares.reduce((sum, { spentBefore }) => sum + spentBefore, 0);
    const divided = Math.max(0, capacity - held);
    const planned = toWholeShares(toShares(divided, asked), divided);
    let free = capacity - held;
    for (const [index, share] of shares.entries()) {
      const amount = planned[index] ?? 0;
      const isEstimated = this.#hasNewCallers && share.askedPerSecond !== undefined;
      if (share.amount > amount && (share.hasReported || isEstimated)) share.restrict(amount);
      free -= share.amount;
    }
    for (const [index, share] of shares.entries()) {
      const amount = Math.min(planned[index] ?? 0, Math.floor(share.amount + free));
      const isKnown = share.hasReported || share.amount <= amount * tolerance;
      if (isKnown && amount > share.amount && differs(share.amount, amount)) {
        const spent = share.hasReported ? 0 : share.amount;
        free -= amount - share.amount + spent;
        share.grant(amount, spent);
      }
      share.hasReported = false;
    }
  }

  /** What the caller is to do. */
  toStrategy({ amount }: Share): Strategy {
    if (!this.isPaced) return toGrantedBucket(amount);
    if (amount <= 0) return 'deny_all';
    const tokens = amount * this.#depth;
    return toPacedBucket(Math.max(1, tokens), amount / this.windowSeconds);
  }
}

function differs(now: number, planned: number): boolean {
  return Math.abs(planned - now) > Math.max(0.5, Math.max(now, planned) * tolerance);
}
