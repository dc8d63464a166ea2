// Counts one request whose hits belong to several stores, or to several nodes of one store. The caller assigns the
// hits.
import type { AppError } from '../../shared/errors.ts';
import { type CountMode, type CountRequest, findSuppressed, type Hit } from './store.ts';

/** The part of a request that one store or node counts. */
export interface Part {
  readonly hits: readonly Hit[];
  /** As CounterStore.count. */
  readonly count: (request: CountRequest) => void;
}

export interface PartsRule {
  /** How many parts are counted at the same time. */
  readonly parallelism: number;
  /** Whether parts after a failed one are still counted: the request fails in any case. */
  readonly continuesOnError: boolean;
}

/**
 * Counts the parts in order. With `add-unless-over` all parts are read before any counts; another request, even one of
 * this worker, can count in between, so a counter that should stay unchanged may get a few hits more.
 */
export function countInParts(request: CountRequest, parts: readonly Part[], rule: PartsRule): void {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) only.count(request);
  else if (request.mode === 'add-unless-over') countUnlessOver(request, parts, rule);
  else countEach(request, parts, request.mode, rule, request.settle.bind(request));
}

function countEach(
  request: CountRequest,
  parts: readonly Part[],
  mode: CountMode,
  { parallelism, continuesOnError }: PartsRule,
  done: (error: AppError | undefined) => void,
): void {
  let begun = 0;
  let counted = 0;
  let failure: AppError | undefined;
  const begin = (part: Part | undefined) => {
    if (part === undefined) return;
    begun++;
    part.count(new PartRequest(request, part.hits, mode, onSettled));
  };
  const onSettled = (error: AppError | undefined) => {
    if (failure !== undefined && !continuesOnError) return;
    failure ??= error;
    counted++;
    if (counted === parts.length || (failure !== undefined && !continuesOnError)) done(failure);
    else begin(parts[begun]);
  };
  for (const part of parts.slice(0, parallelism)) begin(part);
}

function countUnlessOver(request: CountRequest, parts: readonly Part[], rule: PartsRule): void {
  const peeks = new Map<Hit, Hit>();
  for (const hit of request.hits) if (!hit.refund) peeks.set(hit, { ...hit });
  const peekParts = parts
    .map(({ hits, count }) => ({ count, hits: hits.flatMap((hit) => peeks.get(hit) ?? []) }))
    .filter(({ hits }) => hits.length > 0);
  const decide = (error: AppError | undefined) => {
    if (error !== undefined && !rule.continuesOnError) request.settle(error);
    else countDecided();
  };
  if (peekParts.length === 0) countDecided();
  else countEach(request, peekParts, 'peek', rule, decide);

  function countDecided(): void {
    const suppressed = findSuppressed(request.hits, (hit) => {
      const { after } = peeks.get(hit) as Hit;
      return after + hit.hits > hit.limit;
    });
    const copies = new Map<Hit, Hit>();
    for (const [index, hit] of request.hits.entries()) {
      const isStill = suppressed?.[index] === true;
      copies.set(hit, isStill ? { ...hit, hits: 0, exactHits: undefined } : { ...hit });
    }
    const copyParts = parts.map(({ hits, count }) => ({
      count,
      hits: hits.flatMap((hit) => copies.get(hit) ?? []),
    }));
    countEach(request, copyParts, 'add', rule, (error) => {
      for (const [hit, copy] of copies) hit.after = copy.after;
      request.settle(error);
    });
  }
}

/** A request for some hits of another one, settled on its own. It is cancelled when that one is. */
export class PartRequest implements CountRequest {
  readonly hits: readonly Hit[];
  readonly mode: CountMode;
  readonly deadlineMs: number;
  readonly settle: CountRequest['settle'];
  readonly #request: CountRequest;

  constructor(
    request: CountRequest,
    hits: readonly Hit[],
    mode: CountMode,
    settle: CountRequest['settle'],
  ) {
    this.hits = hits;
    this.mode = mode;
    this.deadlineMs = request.deadlineMs;
    this.settle = settle;
    this.#request = request;
  }

  get cancelled(): boolean {
    return this.#request.cancelled;
  }
}
