// The messages of proto/ratelane/fleet/v1/fleet.proto as decoded: every field present, 64-bit integers as numbers.
// Fields that a writer may omit are optional.

export interface FromWorkerMessage {
  readonly message?: 'hello' | 'report' | 'counters';
  readonly hello?: HelloMessage | null;
  readonly report?: ReportMessage | null;
  readonly counters?: CountersAnswerMessage | null;
}

export interface ToWorkerMessage {
  readonly message?: 'counters' | 'forget';
  readonly counters?: CountersQuestionMessage | null;
  readonly forget?: ForgetCountersMessage | null;
}

export interface HelloMessage {
  readonly nodeId: string;
  readonly instance: string;
  readonly agreement: string;
  readonly countsAlone: boolean;
  readonly allowsReset: boolean;
  /** 0 is none, 1 hashed, 2 plain. */
  readonly values: number;
  /** '' when the worker counts in its own memory, and from older workers. */
  readonly failureMode?: string;
  readonly shadowMode?: boolean;
  /** Whether the worker expects answers to its reports. */
  readonly awaitsAnswers?: boolean;
}

export interface ReportMessage {
  readonly version: string;
  readonly totals?: TotalsMessage | null;
  readonly seconds: number;
  readonly rules: readonly RuleTrafficMessage[];
  readonly otherRules?: RuleTrafficMessage | null;
  readonly otherRuleCount: number;
  readonly limited?: LimitedValuesMessage | null;
  readonly unmatched: readonly UnmatchedMessage[];
  readonly store?: StoreMessage | null;
  readonly failures?: DomainFailuresMessage | null;
  readonly quota?: QuotaMessage | null;
}

export interface QuotaMessage {
  readonly streams: number;
  readonly buckets: number;
  readonly assignments: number;
}

export interface DomainFailuresMessage {
  readonly domains: readonly DomainFailureMessage[];
}

export interface DomainFailureMessage {
  readonly domain: string;
  readonly errors: number;
  readonly noMatch: number;
}

export interface TotalsMessage {
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
  readonly nearLimitHits: number;
  readonly noMatch: number;
  readonly durations: readonly number[];
  readonly withoutStore: number;
  readonly storeDurations: readonly number[];
}

export interface RuleTrafficMessage {
  readonly rule: string;
  readonly hits: number;
  readonly overLimit: number;
  readonly nearLimit: number;
}

export interface LimitedValuesMessage {
  readonly periodStart: number;
  readonly seconds: number;
  readonly values: readonly LimitedValueMessage[];
  readonly unlistedAtMost: number;
}

export interface LimitedValueMessage {
  readonly domain: string;
  readonly rule: string;
  readonly entries: readonly EntryMessage[];
  readonly count: number;
  readonly error: number;
}

export interface EntryMessage {
  readonly key: string;
  readonly value: string;
}

export interface UnmatchedMessage {
  readonly domain: string;
  readonly entries: readonly EntryMessage[];
}

export interface StoreMessage {
  readonly kind: string;
  readonly serversAway: number;
  readonly clockOffsetMs: number;
  /** 0 also from older workers. */
  readonly unreachableSeconds?: number;
}

export interface DescriptorMessage {
  readonly entries: readonly EntryMessage[];
}

export interface CountersQuestionMessage {
  readonly id: number;
  readonly domain: string;
  readonly descriptors: readonly DescriptorMessage[];
  readonly reset: boolean;
}

export interface CountersAnswerMessage {
  readonly id: number;
  readonly problem: string;
  readonly counters: readonly CounterMessage[];
}

export interface CounterMessage {
  readonly descriptor: number;
  readonly problem?: string;
  readonly rule?: string;
  readonly used?: number;
  readonly limit?: number;
  readonly window?: string;
  readonly secondsUntilReset?: number;
  readonly shadowMode?: boolean;
}

export interface ForgetCountersMessage {
  readonly domain: string;
  readonly descriptors: readonly DescriptorMessage[];
}
