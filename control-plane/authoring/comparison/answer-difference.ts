// The differences between two services' answers to one request.
import { isDeepStrictEqual } from 'node:util';
import { toNumberText } from '../../../shared/rules/limit-shape.ts';
import type {
  DescriptorStatusMessage,
  HeaderValueMessage,
  RateLimitResponseMessage,
} from '../../../shared/wire/rate-limit-messages.ts';
import { codeNames } from '../../../worker/decision/message.ts';

const differenceKinds = [
  'error',
  'code',
  'statuses',
  'limit',
  'remaining',
  'reset',
  'response header',
  'request header',
  'metadata',
] as const;
export type DifferenceKind = (typeof differenceKinds)[number];

export interface AnswerDifference {
  readonly kind: DifferenceKind;
  /** The index of a descriptor from 0; undefined for the whole answer. */
  readonly descriptor: number | undefined;
  /** The name of the header, in lower case. */
  readonly header: string | undefined;
  /** Both answers, human-readable. */
  readonly reference: string;
  readonly candidate: string;
}

/** A service's answer: a response, or an error that it chose to return. */
export type ServiceAnswer =
  | { readonly ok: true; readonly response: RateLimitResponseMessage }
  /** `code` is the name of a gRPC status. */
  | { readonly ok: false; readonly code: string };

/** Services round the time to a reset at slightly different times. */
const resetToleranceSeconds = 1;
const unitNames = ['', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'];
const none = 'none';

export function compareAnswers(
  reference: ServiceAnswer,
  candidate: ServiceAnswer,
): AnswerDifference[] {
  const found: AnswerDifference[] = [];
  const note = (
    kind: DifferenceKind,
    one: string,
    other: string,
    position: { readonly descriptor?: number; readonly header?: string } = {},
  ) => {
    if (one === other) return;
    const { descriptor, header } = position;
    found.push({ kind, descriptor, header, reference: one, candidate: other });
  };
  if (!reference.ok || !candidate.ok) {
    const outcome = (answer: ServiceAnswer) => (answer.ok ? 'an answer' : answer.code);
    note('error', outcome(reference), outcome(candidate));
    return found;
  }
  const [one, other] = [reference.response, candidate.response];
  note('code', toCodeName(one.overallCode), toCodeName(other.overallCode));
  const [statuses, otherStatuses] = [one.statuses ?? [], other.statuses ?? []];
  note('statuses', `${statuses.length}`, `${otherStatuses.length}`);
  for (const [descriptor, status] of statuses.entries()) {
    const otherStatus = otherStatuses[descriptor];
    if (otherStatus === undefined) break;
    note('code', toCodeName(status.code), toCodeName(otherStatus.code), { descriptor });
    note('limit', toLimitText(status), toLimitText(otherStatus), { descriptor });
    const remaining = ({ limitRemaining = 0 }: DescriptorStatusMessage) => `${limitRemaining}`;
    note('remaining', remaining(status), remaining(otherStatus), { descriptor });
    const [reset, otherReset] = [toReset(status), toReset(otherStatus)];
    if (!isSameText(reset, otherReset, /\d+/g)) note('reset', reset, otherReset, { descriptor });
  }
  const compareHeaders = (
    kind: DifferenceKind,
    headers: readonly HeaderValueMessage[] = [],
    others: readonly HeaderValueMessage[] = [],
  ) => {
    const [values, otherValues] = [toValues(headers), toValues(others)];
    for (const header of new Set([...values.keys(), ...otherValues.keys()])) {
      const [value, otherValue] = [values.get(header) ?? none, otherValues.get(header) ?? none];
      if (!isSameText(value, otherValue, toResetPattern(header))) {
        note(kind, value, otherValue, { header });
      }
    }
  };
  compareHeaders('response header', one.responseHeadersToAdd, other.responseHeadersToAdd);
  compareHeaders('request header', one.requestHeadersToAdd, other.requestHeadersToAdd);
  if (!isDeepStrictEqual(one.dynamicMetadata ?? null, other.dynamicMetadata ?? null)) {
    note('metadata', toMetadataText(one), toMetadataText(other));
  }
  return found;
}

/** Numbers that the pattern finds are times to a reset. */
function isSameText(one: string, other: string, times: RegExp | undefined): boolean {
  if (one === other) return true;
  if (times === undefined || one.replace(times, '') !== other.replace(times, '')) return false;
  const [found, others] = [one.match(times) ?? [], other.match(times) ?? []];
  const secondsOf = (text: string | undefined) => Number(/\d+/.exec(text ?? '')?.[0]);
  return (
    found.length === others.length &&
    found.every(
      (text, index) =>
        Math.abs(secondsOf(text) - secondsOf(others[index])) <= resetToleranceSeconds,
    )
  );
}

function toResetPattern(header: string): RegExp | undefined {
  if (header === 'ratelimit') return /;t=\d+/g;
  return header.includes('reset') || header === 'retry-after' ? /\d+/g : undefined;
}

function toCodeName(code: number | undefined): string {
  return codeNames[code ?? 0] ?? `${code}`;
}

function toLimitText({ currentLimit }: DescriptorStatusMessage): string {
  if (!currentLimit) return none;
  const { name = '', requestsPerUnit = 0, unit = 0 } = currentLimit;
  const text = `${toNumberText(requestsPerUnit)} per ${unitNames[unit] ?? unit}`;
  return name === '' ? text : `${text} (${name})`;
}

function toReset({ durationUntilReset }: DescriptorStatusMessage): string {
  return durationUntilReset ? `${durationUntilReset.seconds ?? 0} s` : none;
}

/** The values by header name; those of a repeated name in their order. */
function toValues(headers: readonly HeaderValueMessage[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const { key = '', value = '' } of headers) {
    const name = key.toLowerCase();
    const before = values.get(name);
    values.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return values;
}

function toMetadataText({ dynamicMetadata }: RateLimitResponseMessage): string {
  return dynamicMetadata ? JSON.stringify(dynamicMetadata) : none;
}
