// One counter of a limit, and the shares that callers have of it: how much each may admit by itself until its next
// assignment (behaviour: quota-service). Pure: it counts nothing and sends nothing.
//
// Every amount is in requests. For example, one caller has a limit of 600 per minute:
// 1. It is granted all: its `granted` and `amount` are 600.
// 2. By its rate it has probably admitted 50 since: `expected` is 50, `amount` 550, and the store counts 50 (`used`).
// 3. It reports 60: the other 10 are `uncounted` until the store counts them, `expected` is 0, `amount` 540.
// 4. The minute ends before the next report: `mostLate` is 540, the most of that report that the new minute ignores.

import { windowSecondsOf } from '../../shared/rules/limit-shape.ts';
import type { Entry, Match } from '../../shared/rules/rule.ts';
import type { Divided, Lease } from './lease.ts';
import { toIntegerShares, toShares } from './shares.ts';
import { type Strategy, toGrantedBucket, toPacedBucket } from './strategy.ts';

/** Up to this length of its window a limit is shared as a rate, since several windows pass between two reports. */
export const longestPacedSeconds = 10;
/** A newly planned share stays unchanged if it differs by less than this: each new bucket is full at first. */
const tolerance = 0.1;
/** A caller's bucket is full whenever its rate changes, so it holds only half a window's requests. */
const windowDepth = 0.5;
/** The shortest time from which a rate is computed. */
const shortestRateMs = 200;
/** The pause between plans grows with the callers, so that planning costs a pool with many no more. */
const planMsPerShare = 2;
const longestPlanMs = 500;

/** The most that a store counts at once, whatever callers report. */
const mostHits = 2 ** 53;

/** The holder of a share. */
export interface Holder {
  /** Called when its assignment has changed. */
  news(): void;
}

/** The part of a pool that one caller has. */
export class Share {
  readonly holder: Holder;
  /** For a paced limit: requests per window. Otherwise: what it may still admit, less what is `expected`. */
  amount = 0;
  /** Requests per second, admitted or refused; undefined until a report covers enough time. */
  askedPerSecond: number | undefined;
  /** The time of its last report, monotonic. */
  reportedMs: number;
  /** Requests since `askedSinceMs` that are not part of the rate yet. */
  #asked = 0;
  #askedSinceMs: number;
  /** What the caller has probably admitted in this window since its last report: counted ahead of the next one. */
  expected = 0;
  /** The time up to which its admitted requests are counted, monotonic. */
  countedMs: number;
  /** `amount` as last assigned or reported, with what is `expected` since: the caller's bucket never has more. */
  granted = 0;
  /** What the caller may have admitted of replaced amounts in this window: 540 if these are withdrawn unreported. */
  unreported = 0;
  /** The most that the caller may have admitted in earlier windows without a report. */
  mostLate = 0;
  /** Whether it has reported since the last plan. */
  hasReported = false;
  /** Whether the amount was planned. */
  isPlanned = false;
  /** Whether the amount must be sent to the caller. */
  isNews = true;
  /** Whether the caller's bucket must be refilled. */
  mustRefill = false;

  constructor(holder: Holder, nowMs: number) {
    this.holder = holder;
    this.reportedMs = nowMs;
    this.countedMs = nowMs;
    this.#askedSinceMs = nowMs;
  }

  /** The caller may now admit `amount`, and may have admitted `unreported` requests of its previous amount. */
  grant(amount: number, unreported: number): void {
    this.unreported += unreported;
    this.mustRefill = true;
    this.restrict(amount);
  }

  /** The caller may admit at most `amount`; anything above is withdrawn. */
  restrict(amount: number): void {
    this.amount = amount;
    this.granted = amount;
    this.isNews = true;
  }

  /** `reportedMs`, the time that the report covers, is used while the rate is unknown, as after a server's start. */
  observe(asked: number, nowMs: number, reportedMs: number): void {
    this.hasReported = true;
    this.reportedMs = nowMs;
    this.countedMs = nowMs;
    this.#asked += asked;
    const passedMs = Math.max(
      nowMs - this.#askedSinceMs,
      this.askedPerSecond === undefined ? reportedMs : 0,
    );
    if (passedMs < shortestRateMs) return;
    this.askedPerSecond = (this.#asked * 1_000) / passedMs;
    this.#asked = 0;
    this.#askedSinceMs = nowMs;
  }
}

/** A caller's report on the time since its previous one. */
export interface Reported {
  /** Requests that it admitted. */
  readonly allowed: number;
  /** All requests, admitted or refused. */
  readonly asked: number;
  readonly reportedMs: number;
}

type PoolOf = Pick<Pool, 'key' | 'domain' | 'entries' | 'match' | 'lease'>;

export class Pool {
  /** The counter's key without its window. */
  readonly key: string;
  readonly match: Match;
  readonly domain: string;
  /** The entries of a bucket with this counter. */
  readonly entries: readonly Entry[];
  readonly windowSeconds: number;
  readonly isPaced: boolean;
  /** Requests in a window. */
  readonly limit: number;
  /** The size of a paced bucket, as a fraction of the requests per window. */
  readonly #depth: number;
  readonly #shares = new Set<Share>();
  /** The lease of this server, if several divide the limit. */
  readonly lease: Lease | undefined;
  /** What the store has counted in the window, of all servers. */
  used = 0;
  /** What the store must still count in the window; negative, to be refunded, if more was expected than admitted. */
  uncounted = 0;
  /** What a failed store was sent in the window, and may not have counted. */
  #doubtful = 0;
  /** Whether a second has begun since its last count. */
  isDue = false;
  /** The start of the window of `used`, in Unix seconds. */
  windowStart = -1;
  #beganMs = Number.NEGATIVE_INFINITY;
  /** The time of the store's last answer, monotonic. */
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
    const isBucket = limiter?.algorithm === 'token_bucket';
    this.isPaced = isBucket || this.windowSeconds <= longestPacedSeconds;
    this.limit = requestsPerUnit;
    this.#depth = isBucket ? limiter.capacity / Math.max(1, limiter.limit) : windowDepth;
  }

  get size(): number {
    return this.#shares.size;
  }

  /** The demand of the callers, each at most the whole limit, as a fraction of the limit. */
  get need(): number {
    const all = this.limit / this.windowSeconds;
    let sum = 0;
    for (const { askedPerSecond } of this.#shares) sum += Math.min(all, askedPerSecond ?? all);
    return all === 0 ? 0 : sum / all;
  }

  /** What all servers divide among them. */
  get divided(): Divided {
    return {
      total: this.isPaced ? this.limit : Math.max(0, this.limit - this.used),
      limit: this.limit,
      windows: this.isPaced ? 1 : longestPacedSeconds / this.windowSeconds,
    };
  }

  /** What all callers of all servers may still admit. */
  get #left(): number {
    return this.isPaced ? this.limit : Math.max(0, this.limit - this.used - this.uncounted);
  }

  /** What the callers of this server may still admit. */
  get #capacity(): number {
    return this.lease?.toCapacity(this.#left) ?? this.#left;
  }

  /** What the callers of this server may admit by themselves. */
  get assigned(): number {
    let sum = 0;
    for (const { amount, unreported } of this.#shares) sum += amount + unreported;
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

  /** How many of the requests admitted since its last report exceed the rest of the limit. */
  toOver({ reportedMs, expected }: Share, allowed: number, nowMs: number): number {
    const windows = Math.max(1, (nowMs - reportedMs) / 1_000) / this.windowSeconds;
    // What was expected of this caller is part of `used`.
    const left = this.isPaced ? this.limit * windows : this.limit - this.used + expected;
    return Math.min(allowed, Math.max(0, Math.ceil(allowed - Math.max(0, left))));
  }

  report(share: Share, { allowed, asked, reportedMs }: Reported, nowMs: number): void {
    const beforeMs = this.#beganMs - share.reportedMs;
    const passedMs = nowMs - share.reportedMs;
    share.observe(asked, nowMs, reportedMs);
    if (asked > 0) this.activeMs = nowMs;
    // Of 90 requests in 6 s, of which 2 s were before this window, 30 are late: their window has ended.
    const before = beforeMs > 0 ? Math.floor((allowed * beforeMs) / passedMs) : 0;
    const late = Math.min(share.mostLate, before);
    // If 50 of the other 60 were expected, and counted, 10 must still be; negative if more were expected than came.
    const unexpected = Math.min(mostHits, allowed) - late - share.expected;
    this.uncounted = Math.min(mostHits, this.uncounted + unexpected);
    share.mostLate = 0;
    share.expected = 0;
    if (this.isPaced) return;
    const left = Math.max(0, share.amount + share.unreported - unexpected);
    share.unreported = 0;
    // An assignment replaces the caller's bucket: what it has not used of earlier ones is gone.
    share.restrict(Math.min(share.granted, left));
  }

  /** Counts what callers have probably admitted until now, for a rate until the second ends: others find it used. */
  countAhead(nowMs: number, secondEndMs: number): void {
    const untilMs = this.isPaced ? secondEndMs : nowMs;
    for (const share of this.#shares) {
      const passedMs = untilMs - Math.max(share.countedMs, this.#beganMs);
      if (passedMs <= 0) continue;
      share.countedMs = untilMs;
      const rate = this.isPaced ? share.amount / this.windowSeconds : Number.POSITIVE_INFINITY;
      const asked = (Math.min(rate, share.askedPerSecond ?? 0) * passedMs) / 1_000;
      const expected = this.isPaced ? asked : Math.min(share.amount, asked);
      share.expected += expected;
      this.uncounted += expected;
      if (!this.isPaced) share.amount -= expected;
    }
  }

  /** The whole number of requests to count now; if negative, to refund. */
  drainUncounted(): number {
    // A granted limit must not be exceeded by fractions; for a rate they balance over time.
    const hits = this.isPaced ? Math.round(this.uncounted) : Math.ceil(this.uncounted);
    this.uncounted -= hits;
    // Only what the store has certainly counted is refunded: of 30, with 20 doubtful, 20 are withheld.
    const withheld = Math.min(this.#doubtful, Math.max(0, -hits));
    this.#doubtful -= withheld;
    return hits + withheld;
  }

  /** The store failed: it is unknown whether it has counted these. */
  failed(hits: number): void {
    this.used += hits;
    this.#doubtful += Math.max(0, hits);
  }

  /** Starts a window; its start is in Unix seconds, and on the monotonic clock. */
  begin(windowStart: number, beganMs: number): void {
    const isFirst = this.windowStart < 0;
    this.windowStart = windowStart;
    this.used = 0;
    if (!this.isPaced) this.lease?.begin(windowStart);
    if (isFirst) return;
    this.#beganMs = beganMs;
    // Whole requests belong to the ended window; the fraction, which rounding left, is counted with the next ones.
    this.uncounted %= 1;
    this.#doubtful = 0;
    for (const share of this.#shares) {
      // A caller with a rate may have admitted any number; otherwise at most what it was granted.
      share.mostLate += this.isPaced ? mostHits : share.amount + share.unreported + share.expected;
      share.expected = 0;
      share.unreported = 0;
      if (!this.isPaced) share.restrict(0);
    }
  }

  /** Whether it is too early for another plan. */
  waits(nowMs: number): boolean {
    const pauseMs = Math.min(longestPlanMs, this.#shares.size * planMsPerShare);
    return nowMs - this.#plannedMs < pauseMs;
  }

  /** Divides the rest of the limit, and notifies the holders of changed shares. */
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
    const isOutdated =
      this.#hasNewCallers ||
      free < -0.001 ||
      free > Math.max(0.5, (capacity * tolerance) / 4) ||
      shares.some(({ amount }, index) => differs(amount, planned[index] ?? 0));
    if (!isOutdated) return;
    for (const [index, share] of shares.entries()) {
      share.amount = planned[index] ?? 0;
      share.isNews = true;
    }
  }

  /**
   * What callers may still admit never exceeds the rest of the limit. A share only grows by what no other caller holds,
   * and only if its caller has just reported, so that its remaining amount is known, or has next to nothing. Shares
   * only shrink before their callers report when there are new callers: the requests counted ahead are then taken as
   * admitted. When nothing is left because others count on the limit too, everything is withdrawn at once.
   */
  #planGrants(shares: readonly Share[]): void {
    if (this.#left === 0) {
      for (const share of shares) if (share.amount > 0) share.grant(0, share.amount);
    }
    const capacity = this.#capacity;
    const asked = shares.map(({ askedPerSecond }) =>
      askedPerSecond === undefined ? undefined : askedPerSecond * longestPacedSeconds,
    );
    const unreported = shares.reduce((sum, share) => sum + share.unreported, 0);
    const divided = Math.max(0, capacity - unreported);
    const planned = toIntegerShares(toShares(divided, asked), divided);
    let free = capacity - unreported;
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
        const mayBeSpent = share.hasReported ? 0 : share.amount;
        free -= amount - share.amount + mayBeSpent;
        share.grant(amount, mayBeSpent);
      }
      share.hasReported = false;
    }
  }

  /** The strategy for the caller. */
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
