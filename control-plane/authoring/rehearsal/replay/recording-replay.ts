// Replays a recording under other rules: the relevant part of it, the result, and the reasons why the result may be
// incomplete.
import { toCountText } from '../../../../shared/count-text.ts';
import type { RecordHeader } from '../../../../shared/decision-record.ts';
import { type LocatedRule, locateRules } from '../../../../shared/rules/lookup/located-rule.ts';
import { formatProblem } from '../../../../shared/rules/problem/problem-text.ts';
import type { RuleDocument } from '../../../../shared/rules/rule-document.ts';
import { toTimeText } from '../../../../shared/rules/rule-end.ts';
import { createRulesInTime, type RulesInTime } from '../rules-in-time.ts';
import type { RecordedDecisions, RecordingReading } from './recorded-decisions.ts';
import { Replay, type ReplaySummary } from './replay.ts';

export interface RecordingReplayInput {
  readonly recorded: RecordedDecisions;
  readonly documents: readonly RuleDocument[];
  /** The documents to compare with; undefined: the answers that were recorded. */
  readonly others: readonly RuleDocument[] | undefined;
  readonly mergeDomains: boolean;
  /** Limits the replay to this domain; undefined: all domains. */
  readonly domain?: string;
  /** Called after every few hundred decisions; once it returns true, the rest is omitted. */
  readonly isEnough?: () => boolean;
}

export interface ReplayReport {
  readonly summary: ReplaySummary;
  readonly reading: RecordingReading;
  /** The share of all descriptors that is recorded. */
  readonly rate: number;
  /** Rules that name values of keys whose values are hashed: such rules match nothing. */
  readonly blind: readonly string[];
  /** Whether the files come from workers with different settings; those of the first file are used. */
  readonly hasOtherSettings: boolean;
  readonly hasOthers: boolean;
  /** Whether the end of the recording was omitted. */
  readonly isCut: boolean;
}

export type ReplayResult =
  | { readonly ok: true; readonly report: ReplayReport }
  /** Why there is no report, without a final full stop. */
  | { readonly ok: false; readonly message: string };

export async function replayRecording(input: RecordingReplayInput): Promise<ReplayResult> {
  const { recorded, documents, others, mergeDomains, domain, isEnough = () => false } = input;
  const options = { mergeDomains, sanitizeMetricDots: false };
  const rules = createRulesInTime(documents, options);
  const otherRules = others && createRulesInTime(others, options);
  const { batches, reading } = recorded;
  let replay: Replay | undefined;
  let isCut = false;
  for await (const batch of batches) {
    const wanted =
      domain === undefined ? batch : batch.filter((decision) => decision.domain === domain);
    const [first] = wanted;
    if (replay === undefined && first !== undefined) {
      const startMs = first.time;
      const refusal =
        findRefusal(rules, startMs) ?? (otherRules && findRefusal(otherRules, startMs));
      if (refusal !== undefined) return { ok: false, message: refusal };
      const recordedBy = reading.headers[0]?.settings;
      replay = new Replay({ rules, against: otherRules, recordedBy, startMs });
    }
    for (const decision of wanted) replay?.receive(decision);
    isCut = isEnough();
    if (isCut) break;
  }
  if (replay === undefined) {
    const [first] = reading.leftOut;
    const why =
      first === undefined
        ? ''
        : `; line ${first.line} of '${first.file}' is left out: ${first.reason}`;
    const ofDomain = domain === undefined ? '' : ` of domain ${domain}`;
    return {
      ok: false,
      message: reading.problem ?? `there is no recorded decision${ofDomain}${why}`,
    };
  }
  const [first, ...further] = reading.headers.map(({ settings }) => JSON.stringify(settings));
  return {
    ok: true,
    report: {
      summary: replay.summary(),
      reading,
      rate: Math.min(1, ...reading.headers.map((header) => header.rate)),
      blind: findBlindRules([...documents, ...(others ?? [])], reading.headers),
      hasOtherSettings: further.some((settings) => settings !== first),
      hasOthers: others !== undefined,
      isCut,
    },
  };
}

/** Why a worker would have rejected the rules then. */
function findRefusal(rules: RulesInTime, startMs: number): string | undefined {
  const result = rules(startMs);
  const [problem] = result.ok ? [] : result.problems;
  const at = toTimeText(startMs);
  return problem && `a worker refuses the rules at ${at}: ${formatProblem(problem)}`;
}

/** The names of rules for values that are recorded only as hashes, so that the rules match nothing. */
function findBlindRules(
  documents: readonly RuleDocument[],
  headers: readonly RecordHeader[],
): readonly string[] {
  const hashed = new Set(headers.flatMap(({ hashed_keys }) => hashed_keys));
  if (hashed.size === 0) return [];
  const found = new Set<string>();
  const visit = (rules: readonly LocatedRule[], prefix: string) => {
    for (const { descriptor, composite, children } of rules) {
      const name = `${prefix}.${composite}`;
      const isHashed = hashed.has('*') || hashed.has(descriptor.key);
      if (isHashed && descriptor.value !== '' && descriptor.value !== '*') found.add(name);
      visit(children, name);
    }
  };
  for (const [domain, rules] of locateRules(documents)) visit(rules, domain);
  return [...found];
}

const mostNamed = 20;

/** The reasons why the figures may be incomplete: human-readable sentences without full stops. `compared`: the name of
 * the rules to compare with. */
export function describeDoubts(
  { summary, reading, rate, blind, hasOtherSettings, hasOthers, isCut }: ReplayReport,
  compared: string,
): readonly string[] {
  const { decisions, asRecorded, failed, withoutStore, undecided, untold } = summary;
  return [
    ...(isCut ? ['there was no time for the end of the recording'] : []),
    ...(rate < 1
      ? [
          `the recording has ${toPercent(rate)} of all descriptors: times ${toFactor(rate)} for all traffic`,
        ]
      : []),
    ...(hasOthers
      ? [`under ${compared} ${asRecorded} of ${toCountText(decisions, 'answer')} are as recorded`]
      : []),
    ...(reading.lacksHeader
      ? ['decisions without a header: all traffic and the default settings of a worker are assumed']
      : []),
    ...(hasOtherSettings
      ? ['the workers had different settings: those of the first are used']
      : []),
    ...(blind.length > 0
      ? [
          `values are hashed that ${toCountText(blind.length, 'rule')} ${blind.length === 1 ? 'names' : 'name'}, so ${blind.length === 1 ? 'it matches' : 'they match'} nothing: ${listSome(blind)}`,
        ]
      : []),
    ...(reading.dropped > 0
      ? [
          `the recording lacks ${toCountText(reading.dropped, 'decision')}, first from ${toTimeText(reading.gaps[0]?.from ?? 0)}: counters of these times are too low`,
        ]
      : []),
    ...(failed > 0
      ? [`left out because the store had failed: ${toCountText(failed, 'decision')}`]
      : []),
    ...(withoutStore > 0
      ? [`answered without the store, but counted here: ${toCountText(withoutStore, 'decision')}`]
      : []),
    ...(undecided > 0
      ? [
          `not decided here, for lack of memory or because of an invalid limit in the request: ${toCountText(undecided, 'decision')}`,
        ]
      : []),
    ...(untold.before + untold.after > 0
      ? [
          `too many values to list: refused for others ${untold.before} before, ${untold.after} after`,
        ]
      : []),
    ...(reading.leftOutCount > 0
      ? [
          `left out: ${toCountText(reading.leftOutCount, 'line')} that ${reading.leftOutCount === 1 ? 'is' : 'are'} no record`,
        ]
      : []),
    ...(reading.problem === undefined ? [] : [`not read to the end: ${reading.problem}`]),
  ];
}

function toPercent(rate: number): string {
  return `${Number((rate * 100).toPrecision(3))} %`;
}

function toFactor(rate: number): string {
  return String(Number((1 / rate).toPrecision(3)));
}

function listSome(names: readonly string[]): string {
  const more = names.length - mostNamed;
  return names.slice(0, mostNamed).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
