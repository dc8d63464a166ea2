// What a replay of recorded decisions found, for people and for programs.
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import { escapeText } from '../../../shared/rules/escaped-text.ts';
import { toTimeText } from '../../../shared/rules/rule-end.ts';
import { toColumns } from '../columns.ts';
import type { ReplayReport } from './replay.ts';

/** How many rules, values and names are listed for a person; JSON has more. */
const mostListed = 20;
const mostInJson = 1_000;

/** Lines with their ends. */
export function formatReplay(report: ReplayReport): string {
  const { summary, against } = report;
  const { requests, rules, values, firstMs, lastMs, decisions } = summary;
  const span = formatDuration(Math.max(1_000, Math.ceil((lastMs - firstMs) / 1000) * 1000));
  const compared = against === undefined ? 'the answers that were recorded' : against;
  const changed = rules.filter(({ before, after }) => before !== after);
  return [
    `${toCountText(decisions, 'decision')} of ${span} from ${toTimeText(firstMs)}, compared with ${escapeText(compared)}\n`,
    `refused: ${requests.before} before, ${requests.after} after (${toSigned(requests.after - requests.before)}); newly limited ${requests.newlyLimited}, freed ${requests.freed}\n`,
    ...toTable(['rule', 'asked', 'before', 'after'], changed, (row) => [
      row.rule,
      row.asked,
      row.before,
      row.after,
    ]),
    ...toTable(['value', 'rule', 'before', 'after'], values, (row) => [
      row.value,
      row.rule,
      row.before,
      row.after,
    ]),
    ...describeDoubts(report).map((line) => `${escapeText(line)}\n`),
  ].join('');
}

/** With a last column for the change. */
function toTable<Row extends { readonly before: number; readonly after: number }>(
  headings: readonly string[],
  rows: readonly Row[],
  toCells: (row: Row) => readonly (string | number)[],
): readonly string[] {
  if (rows.length === 0) return [];
  const shown = rows.slice(0, mostListed);
  const table = shown.map((row) => [
    ...toCells(row).map((cell) => escapeText(String(cell))),
    toSigned(row.after - row.before),
  ]);
  const more = rows.length - shown.length;
  return [
    '\n',
    toColumns([[...headings, 'change'], ...table]),
    ...(more > 0 ? [`and ${more} more\n`] : []),
  ];
}

function toSigned(number: number): string {
  return number > 0 ? `+${number}` : String(number);
}

/** What makes the figures less than all of the truth. */
function describeDoubts({
  summary,
  reading,
  rate,
  blind,
  hasOtherSettings,
  against,
}: ReplayReport): readonly string[] {
  const { decisions, asRecorded, failed, withoutStore, undecided, untold } = summary;
  const doubts = [
    ...(rate < 1
      ? [
          `the recording has ${toPercent(rate)} of all descriptors: times ${toFactor(rate)} for all traffic`,
        ]
      : []),
    ...(against === undefined
      ? []
      : [`${asRecorded} of ${toCountText(decisions, 'answer')} are as recorded`]),
    ...(reading.lacksHeader
      ? [
          'decisions without a header: all traffic and the default settings of a worker are supposed',
        ]
      : []),
    ...(hasOtherSettings
      ? ['the workers had different settings: those of the first are taken']
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
    ...(failed > 0 ? [`left out as the store had failed: ${toCountText(failed, 'decision')}`] : []),
    ...(withoutStore > 0
      ? [`answered without the store, but counted here: ${toCountText(withoutStore, 'decision')}`]
      : []),
    ...(undecided > 0
      ? [
          `not decided here, for want of room or for a wrong limit in the request: ${toCountText(undecided, 'decision')}`,
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
    ...reading.leftOut.map(({ file, line, reason }) => `  ${file}:${line}: ${reason}`),
    ...(reading.leftOutCount > reading.leftOut.length
      ? [`  and ${reading.leftOutCount - reading.leftOut.length} more`]
      : []),
    ...(reading.problem === undefined ? [] : [`not read to the end: ${reading.problem}`]),
  ];
  return doubts.length === 0 ? [] : ['', ...doubts];
}

function toPercent(rate: number): string {
  return `${Number((rate * 100).toPrecision(3))} %`;
}

function toFactor(rate: number): string {
  return String(Number((1 / rate).toPrecision(3)));
}

function listSome(names: readonly string[]): string {
  const more = names.length - mostListed;
  return names.slice(0, mostListed).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** For the member `replay` of the JSON of `check`. */
export function toReplayJson({ summary, reading, ...report }: ReplayReport) {
  const { values, rules, requests, untold, firstMs, lastMs, ...counts } = summary;
  return {
    from: toTimeText(firstMs),
    to: toTimeText(lastMs),
    against: report.against ?? null,
    rate: report.rate,
    ...counts,
    requests,
    rules: rules.slice(0, mostInJson),
    values: values.slice(0, mostInJson),
    valuesInAll: values.length,
    untold,
    rulesOfHashedValues: report.blind.slice(0, mostInJson),
    hasOtherSettings: report.hasOtherSettings,
    lacksHeader: reading.lacksHeader,
    dropped: reading.dropped,
    gaps: reading.gaps,
    leftOut: { lines: reading.leftOutCount, first: reading.leftOut },
    problem: reading.problem ?? null,
  };
}
