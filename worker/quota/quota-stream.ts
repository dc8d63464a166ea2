// One caller's stream: receives reports and sends assignments, within bounds (behaviour: quota-service).

import { type GrpcErrorStatus, grpcStatus } from '../../shared/grpc/status.ts';
import { owned } from '../../shared/owned-text.ts';
import type { StreamCaller, StreamHandler } from '../grpc/method.ts';
import type { Span } from '../tracing/tracer.ts';
import { Member, type MemberStream, toBucketKey } from './member.ts';
import {
  type BucketAction,
  type BucketUsage,
  decodeUsageReports,
  encodeActions,
} from './messages.ts';

export const maxBucketsPerStream = 10_000;
/** The most buckets of all streams. */
export const maxBuckets = 250_000;
/** The most characters in the ids of the buckets of all streams. */
const maxBucketCharacters = 33_554_432;
/**
 * The most reports per second on known buckets; Envoy sends one each reporting interval. A report on many buckets
 * counts as several.
 */
export const maxReportsPerSecond = 100;
const usagesPerReport = 100;

const defaultIntervalMs = 5_000;
const shortestIntervalMs = 100;
const longestIntervalMs = 600_000;
/** The lifetime of an assignment, in reporting intervals. */
const lifetime = 3;
const leastTtlSeconds = 5;
/** The longest silence of a caller, in lifetimes of an assignment: by then the assignments have long expired. */
const longestSilence = 2;
/** The most assignments for each bucket between two reports. */
const mostChanges = 100;
export const idleReportsMax = 10;
/** The maximum number of actions in one message. */
const maxActions = 1_000;
/** The most usages of messages that wait. */
const maxUsagesWaiting = 2 * maxBucketsPerStream;

/** Usages that are processed before other streams have their turn. */
const usagesPerTurn = 100;

/** A received message. */
interface Report {
  readonly usages: readonly BucketUsage[];
  readonly span: Span | undefined;
  /** How many usages were processed. */
  read: number;
  /** How many of these have new buckets. */
  added: number;
}

/** What the stream needs of the service. */
export interface QuotaStreamHost {
  /** The number of buckets of all streams. */
  readonly buckets: number;
  /** How many characters the ids of these have. */
  readonly characters: number;
  nowMs(): number;
  /** Starts the span of a usage report; undefined if it is not traced. */
  startSpan(buckets: number): Span | undefined;
  added(member: Member): void;
  reported(member: Member, usage: BucketUsage): void;
  removed(member: Member): void;
  /** Schedules calls of `drain` until no message waits. */
  drainSoon(stream: QuotaStream): void;
  /** Schedules a call of `flush` at the end of this turn. */
  flushSoon(stream: QuotaStream): void;
  countSent(count: number): void;
  refused(): void;
  /** Called when the stream has ended, but still has its members. */
  ended(stream: QuotaStream): void;
}

export class QuotaStream implements StreamHandler, MemberStream {
  readonly #caller: StreamCaller;
  readonly #host: QuotaStreamHost;
  readonly #members = new Map<string, Member>();
  readonly #outbox = new Set<Member>();
  /** Messages that are not processed yet; the first one may be in progress. */
  #waiting: Report[] = [];
  #usagesWaiting = 0;
  #domain = '';
  #isOpen = true;
  /** The interval of its reports, as observed. */
  intervalMs = defaultIntervalMs;
  /** When known buckets were last reported. */
  #observedMs = Number.NEGATIVE_INFINITY;
  /** When anything was last reported. */
  #receivedMs: number;
  /** Assignments sent since then. */
  #sent = 0;
  /** The tokens of a bucket that limits reports. */
  #reportsLeft = 2 * maxReportsPerSecond;
  #refilledMs: number;

  constructor(caller: StreamCaller, host: QuotaStreamHost) {
    this.#caller = caller;
    this.#host = host;
    this.#refilledMs = host.nowMs();
    this.#receivedMs = this.#refilledMs;
  }

  get domain(): string {
    return this.#domain;
  }

  get members(): Iterable<Member> {
    return this.#members.values();
  }

  get ttlSeconds(): number {
    return Math.max(leastTtlSeconds, Math.ceil((lifetime * this.intervalMs) / 1_000));
  }

  /**
   * Called each second. Ends a caller that hangs, since it would keep its shares, and messages that it does not read
   * would accumulate.
   */
  check(): void {
    const isBusy = this.#members.size > 0 && this.#waiting.length === 0;
    const limitMs = longestSilence * this.ttlSeconds * 1_000;
    if (!isBusy || this.#host.nowMs() - this.#receivedMs < limitMs) return;
    this.#refuse(grpcStatus.deadlineExceeded, `no usage report in ${limitMs / 1_000} s`);
  }

  message(bytes: Buffer): void {
    this.#receivedMs = this.#host.nowMs();
    this.#sent = 0;
    const decoded = decodeUsageReports(bytes);
    const usages = decoded.ok ? decoded.message.usages : [];
    const span = this.#host.startSpan(usages.length);
    this.#waiting.push({ usages, span, read: 0, added: 0 });
    if (!decoded.ok) {
      const status = decoded.isTooLarge ? grpcStatus.resourceExhausted : grpcStatus.invalidArgument;
      this.#refuse(status, `a usage report cannot be read: ${decoded.problem}`);
      return;
    }
    if (!this.#setDomain(decoded.message.domain)) return;
    this.#usagesWaiting += usages.length;
    if (this.#usagesWaiting > maxUsagesWaiting || this.#waiting.length > maxUsagesWaiting) {
      this.#refuse(grpcStatus.resourceExhausted, 'too many usage reports at once');
    } else this.#host.drainSoon(this);
  }

  /**
   * Processes some of the waiting usages; returns whether more wait. A message stays in the queue until it is fully
   * processed.
   */
  *drain(): Generator<void, boolean> {
    const report = this.#waiting[0];
    if (report === undefined) return false;
    const { usages } = report;
    const end = Math.min(usages.length, report.read + usagesPerTurn);
    for (const usage of usages.slice(report.read, end)) {
      if (!this.#isOpen) return false;
      if (this.#accept(usage)) report.added++;
      yield;
    }
    if (!this.#isOpen) return false;
    report.read = end;
    if (end === usages.length) this.#finish(report);
    return this.#waiting.length > 0;
  }

  #finish({ usages, span, added }: Report): void {
    this.#waiting.shift();
    this.#usagesWaiting -= usages.length;
    span?.set({ domain: this.#domain, new_buckets: added });
    span?.end();
    if (added > 0) return;
    this.#observeInterval();
    if (!this.#isInTime(usages.length)) {
      const text = `more than ${maxReportsPerSecond} reports a second, or ${maxReportsPerSecond * usagesPerReport} buckets in them`;
      this.#refuse(grpcStatus.resourceExhausted, text);
    }
  }

  halfClose(): void {
    this.#caller.finish();
  }

  closed(why = 'the caller ended the stream'): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#outbox.clear();
    for (const { span } of this.#waiting) span?.end(why);
    this.#waiting = [];
    this.#host.ended(this);
  }

  put(member: Member): void {
    if (!this.#isOpen || !member.isPlanned) return;
    if (this.#outbox.size === 0) this.#host.flushSoon(this);
    this.#outbox.add(member);
  }

  /** Yields so that decisions can be made. */
  *flush(): Generator<void, void> {
    const { ttlSeconds } = this;
    let actions: BucketAction[] = [];
    const members = [...this.#outbox];
    this.#outbox.clear();
    for (const member of members) {
      if (!this.#isOpen) return;
      const { entries } = member;
      if (member.idleReports >= idleReportsMax) {
        actions.push({ entries, assignment: undefined });
        this.#drop(member);
      } else {
        // All steps of one bucket go into one message: between them nothing may be refused.
        for (const strategy of member.toMessages()) {
          actions.push({ entries, assignment: { ttlSeconds, strategy } });
        }
      }
      if (actions.length >= maxActions) actions = this.#send(actions);
      yield;
    }
    if (actions.length > 0) this.#send(actions);
  }

  #send(actions: readonly BucketAction[]): BucketAction[] {
    this.#caller.send(encodeActions(actions));
    this.#host.countSent(actions.length);
    this.#sent += actions.length;
    if (this.#sent > mostChanges * Math.max(maxActions / 10, this.#members.size)) {
      this.#refuse(grpcStatus.resourceExhausted, 'too many assignments without a usage report');
    }
    return [];
  }

  #drop(member: Member): void {
    this.#members.delete(toBucketKey(member.entries));
    this.#host.removed(member);
  }

  #setDomain(domain: string): boolean {
    if (this.#domain === '' && domain === '') {
      this.#refuse(grpcStatus.invalidArgument, 'the first usage report of a stream needs a domain');
      return false;
    }
    if (this.#domain !== '' && domain !== '' && domain !== this.#domain) {
      const text = 'the domain of a stream cannot change: open another stream for another domain';
      this.#refuse(grpcStatus.invalidArgument, text);
      return false;
    }
    if (this.#domain === '') this.#domain = owned(domain);
    return true;
  }

  /** Returns whether the bucket is new. */
  #accept(usage: BucketUsage): boolean {
    const problem = findProblem(usage);
    if (problem !== undefined) {
      this.#refuse(grpcStatus.invalidArgument, problem);
      return false;
    }
    const key = toBucketKey(usage.entries);
    const known = this.#members.get(key);
    if (known !== undefined) {
      this.#host.reported(known, usage);
      return false;
    }
    const excess = this.#findExcess();
    if (excess !== undefined) {
      this.#refuse(grpcStatus.resourceExhausted, excess);
      return false;
    }
    const entries = usage.entries.map(({ key, value }) => ({
      key: owned(key),
      value: owned(value),
    }));
    const member = new Member(this, entries);
    this.#members.set(owned(key), member);
    this.#host.added(member);
    this.#host.reported(member, usage);
    return true;
  }

  /** Why there is no room for another bucket, if so. */
  #findExcess(): string | undefined {
    if (this.#members.size >= maxBucketsPerStream) {
      return `more than ${maxBucketsPerStream} buckets on one stream`;
    }
    if (this.#host.buckets >= maxBuckets) return `more than ${maxBuckets} buckets on all streams`;
    return this.#host.characters >= maxBucketCharacters
      ? `buckets with more than ${maxBucketCharacters} characters on all streams`
      : undefined;
  }

  /** Envoy reports a new bucket at once and alone, and afterwards together with all others at each interval. */
  #observeInterval(): void {
    const nowMs = this.#host.nowMs();
    const passedMs = nowMs - this.#observedMs;
    this.#observedMs = nowMs;
    if (passedMs < shortestIntervalMs || passedMs > longestIntervalMs) return;
    this.intervalMs = passedMs;
  }

  #isInTime(usages: number): boolean {
    const nowMs = this.#host.nowMs();
    const refill = ((nowMs - this.#refilledMs) * maxReportsPerSecond) / 1_000;
    const cost = Math.max(1, usages / usagesPerReport);
    this.#reportsLeft = Math.min(2 * maxReportsPerSecond, this.#reportsLeft + refill) - cost;
    this.#refilledMs = nowMs;
    return this.#reportsLeft >= 0;
  }

  #refuse(status: GrpcErrorStatus, text: string): void {
    this.#host.refused();
    this.#caller.finish({ status, text });
    this.closed(text);
  }
}

function findProblem({
  entries,
  elapsedSeconds,
  allowed,
  denied,
}: BucketUsage): string | undefined {
  if (entries.length === 0) return 'a usage report names no bucket';
  if (elapsedSeconds < 0) return 'the elapsed time of a usage report is negative';
  if (typeof allowed === 'bigint' || typeof denied === 'bigint') {
    return 'a usage report has more than 2^53 requests';
  }
  return undefined;
}
