// The strategy that a caller is sent for a bucket, in numbers that Envoy interprets as intended (behaviour:
// quota-service).

/** Represents envoy.type.v3.RateLimitStrategy. */
export type Strategy = 'allow_all' | 'deny_all' | TokenBucket;

export interface TokenBucket {
  /** The bucket is full at first. */
  readonly maxTokens: number;
  readonly tokensPerFill: number;
  /** Envoy reads whole seconds only. */
  readonly fillSeconds: number;
}

const mostTokens = 2 ** 32 - 1;
/** The possible fill intervals, in seconds: a rate is whole tokens per interval. */
const fillSpans = [1, 10, 60, 600, 3_600, 86_400, 31_536_000] as const;
const longestSpan = 31_536_000;
/** At least this many tokens per interval, so that rounding costs a rate at most half a percent. */
const leastTokens = 200;

/** A bucket of `tokens` tokens that is filled at this rate. */
export function toPacedBucket(tokens: number, perSecond: number): Strategy {
  if (tokens < 1 || perSecond <= 0) return 'deny_all';
  const fillSeconds = fillSpans.find((span) => perSecond * span >= leastTokens) ?? longestSpan;
  return {
    maxTokens: Math.min(mostTokens, Math.floor(tokens)),
    tokensPerFill: Math.min(mostTokens, Math.max(1, Math.floor(perSecond * fillSeconds))),
    fillSeconds,
  };
}

/** Grants `tokens` requests and no more. */
export function toGrantedBucket(tokens: number): Strategy {
  if (tokens < 1) return 'deny_all';
  return {
    maxTokens: Math.min(mostTokens, Math.floor(tokens)),
    tokensPerFill: 1,
    fillSeconds: longestSpan,
  };
}

/** The tighter of two, for a bucket with several limits. */
export function tighter(one: Strategy, other: Strategy): Strategy {
  if (one === 'deny_all' || other === 'allow_all') return one;
  if (other === 'deny_all' || one === 'allow_all') return other;
  const rate = ({ tokensPerFill, fillSeconds }: TokenBucket) => tokensPerFill / fillSeconds;
  const slower = rate(one) <= rate(other) ? one : other;
  return { ...slower, maxTokens: Math.min(one.maxTokens, other.maxTokens) };
}

/**
 * What to send so that the caller changes from `before` to `next`. Envoy keeps its bucket if the numbers of tokens are
 * the same, even if the fill interval differs; a new bucket inherits the tokens of the previous one, so to start full
 * it must follow another strategy.
 */
export function toSteps(
  next: Strategy,
  before: Strategy | undefined,
  mustRefill: boolean,
): readonly Strategy[] {
  if (typeof next === 'string' || typeof before !== 'object') return [next];
  if (mustRefill) return ['deny_all', next];
  const { maxTokens, tokensPerFill, fillSeconds } = next;
  const isSame = maxTokens === before.maxTokens && tokensPerFill === before.tokensPerFill;
  if (!isSame || fillSeconds === before.fillSeconds) return [next];
  return [{ ...next, tokensPerFill: tokensPerFill > 1 ? tokensPerFill - 1 : 2 }];
}
