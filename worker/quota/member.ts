// A bucket as one caller reports it: its limits, and the strategy that the caller was last sent.

import type { Entry, Match, RuleSet } from '../../shared/rules/rule.ts';
import { toMapKey } from '../counters/store.ts';
import type { RuleStats } from '../metrics.ts';
import type { Holder, Pool, Share } from './pool.ts';
import { type Strategy, tighter, toSteps } from './strategy.ts';

/** A limit that applies to the bucket. */
export interface Stake {
  readonly match: Match;
  readonly pool: Pool;
  readonly share: Share;
  readonly stats: RuleStats;
}

/** The stream of the caller that reports the bucket. */
export interface MemberStream {
  readonly domain: string;
  /** The lifetime of an assignment. */
  readonly ttlSeconds: number;
  /** Sends the bucket's assignment to the caller at the end of this turn. */
  put(member: Member): void;
}

export class Member implements Holder {
  readonly stream: MemberStream;
  /** The bucket's id, as the caller wrote it. */
  readonly entries: readonly Entry[];
  /** The entries of the bucket in the order of the rules. */
  ordered: readonly Entry[] = [];
  /** The rules in which its limits were found. */
  ruleSet: RuleSet | undefined;
  stakes: readonly Stake[] = [];
  /** The strategy when no limit applies, or none that refuses. */
  fixed: Strategy | undefined;
  sent: Strategy | undefined;
  /** Consecutive reports without a request. */
  idleReports = 0;

  constructor(stream: MemberStream, entries: readonly Entry[]) {
    this.stream = stream;
    this.entries = entries;
  }

  /** In the bucket's id. */
  get characters(): number {
    return this.entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
  }

  news(): void {
    this.stream.put(this);
  }

  /** Whether everything that determines its strategy is known. */
  get isPlanned(): boolean {
    return this.stakes.every(({ share }) => share.isPlanned);
  }

  /** The strategies to send now, in this order. */
  toMessages(): readonly Strategy[] {
    const mustRefill = this.stakes.some(({ share }) => share.mustRefill);
    for (const { share } of this.stakes) {
      share.isNews = false;
      share.mustRefill = false;
    }
    const steps = toSteps(this.fixed ?? this.#combine(), this.sent, mustRefill);
    this.sent = steps.at(-1);
    return steps;
  }

  /**
   * The tightest strategy of several limits. A granted limit that is far from used up leaves the rate to the others.
   */
  #combine(): Strategy {
    const paced = this.stakes.filter(({ pool }) => pool.isPaced);
    let combined: Strategy = 'allow_all';
    for (const { pool, share } of paced) combined = tighter(combined, pool.toStrategy(share));
    for (const { pool, share } of this.stakes) {
      if (!pool.isPaced && !this.#isAmple(share, combined)) {
        combined = tighter(combined, pool.toStrategy(share));
      }
    }
    return combined;
  }

  #isAmple({ amount }: Share, paced: Strategy): boolean {
    if (typeof paced === 'string') return false;
    const perSecond = paced.tokensPerFill / paced.fillSeconds;
    return amount > paced.maxTokens + perSecond * this.stream.ttlSeconds;
  }
}

/** Identifies a bucket on its stream. */
export function toBucketKey(entries: readonly Entry[]): string {
  const parts = entries.map(({ key, value }) => `${key.length}:${key}${value.length}:${value}`);
  return toMapKey(parts.sort().join(''));
}
