// A response as text: the answer first, then a line for each descriptor.
import { commandLine } from '../../shared/command-line.ts';
import { toNumberText } from '../../shared/rules/limit-shape.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import { unitFromNumber } from '../../shared/rules/unit.ts';
import type {
  DescriptorStatusMessage,
  HeaderValueMessage,
  RateLimitResponseMessage,
} from '../../shared/wire/rate-limit-messages.ts';
import { codes } from '../decision/message.ts';

/** The value of limit_remaining when a rule is unlimited. */
const unlimited = 0xffff_ffff;

/** The request. */
export interface AskedRequest {
  readonly domain: string;
  readonly descriptors: readonly (readonly Entry[])[];
}

/** Lines with their line breaks. */
export function toResponseText(
  response: RateLimitResponseMessage,
  { domain, descriptors }: AskedRequest,
): string {
  // No limit applies: intentionally, or because a domain or key differs from the rules.
  const withoutLimit = response.statuses?.findIndex(isWithoutLimit) ?? -1;
  const lines = [
    toAnswer(response.overallCode),
    ...(response.statuses ?? []).map(
      (status, index) => `  ${toName(descriptors[index] ?? [])}: ${toStatus(status)}`,
    ),
    ...(response.responseHeadersToAdd ?? []).map(toHeader('response header')),
    ...(response.requestHeadersToAdd ?? []).map(toHeader('request header')),
    ...(withoutLimit < 0 ? [] : [toNoLimitHint(domain, descriptors[withoutLimit] ?? [])]),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** A shell command, which lacks the location of the rules. */
function toNoLimitHint(domain: string, entries: readonly Entry[]): string {
  const program = commandLine('control-plane');
  return `why no limit: ${program} explain RULES --domain ${quote(domain)} --descriptor ${quote(toName(entries))}`;
}

function quote(text: string): string {
  return /^[\w=,.:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function toAnswer(code: number | undefined): string {
  if (code === codes.ok) return 'OK';
  return code === codes.overLimit ? 'OVER LIMIT' : `UNKNOWN (code ${code ?? 0})`;
}

function toName(entries: readonly Entry[]): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(',');
}

function toStatus(status: DescriptorStatusMessage): string {
  const answer = toAnswer(status.code);
  const { currentLimit: limit, limitRemaining: remaining = 0, durationUntilReset: reset } = status;
  if (!limit) return `${answer}, ${remaining === unlimited ? 'unlimited' : 'no limit applies'}`;
  const unit = unitFromNumber(limit.unit ?? 0) ?? `unit ${limit.unit ?? 0}`;
  const name = limit.name ? ` (${limit.name})` : '';
  const resets = reset ? `, resets in ${reset.seconds ?? 0} s` : '';
  return `${answer}, limit ${toNumberText(limit.requestsPerUnit ?? 0)} per ${unit}${name}, ${remaining} remaining${resets}`;
}

function isWithoutLimit({ currentLimit, limitRemaining }: DescriptorStatusMessage): boolean {
  return !currentLimit && limitRemaining !== unlimited;
}

function toHeader(what: string): (header: HeaderValueMessage) => string {
  return ({ key = '', value = '' }) => `  ${what} ${key}: ${value}`;
}
