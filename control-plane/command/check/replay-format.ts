// Formats the findings of a replay of recorded decisions, as text and as JSON.
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import { toTimeText } from '../../../shared/rules/rule-end.ts';
import { describeDoubts } from '../../authoring/rehearsal/replay/recording-replay.ts';
import { toColumns } from '../columns.ts';
import type { CheckedReplay } from './replay.ts';

/** The most rules, values and names in the text; JSON has more. */
const mostListed = 20;
const mostInJson = 1_000;

/** Lines with their line breaks. */
export function formatReplay(report: CheckedReplay): string {
  const { summary, against } = report;
  const doubts = describeDoubts(report, 'the other rules');
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
    ...(doubts.length === 0 ? [] : ['\n']),
    ...[...doubts, ...describeLeftOut(report)].map((line) => `${escapeText(line)}\n`),
  ].join('');
}

/** A table with a last column for the change. */
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

function describeLeftOut({ reading: { leftOut, leftOutCount } }: CheckedReplay): string[] {
  const lines = leftOut.map(({ file, line, reason }) => `  ${file}:${line}: ${reason}`);
  const more = leftOutCount - leftOut.length;
  return more > 0 ? [...lines, `  and ${more} more`] : lines;
}

/** The member `replay` of the JSON of `check`. */
export function toReplayJson({ summary, reading, ...report }: CheckedReplay) {
  const { values, rules, requests, untold, firstMs, lastMs, ...counts } = summary;
  return {
    from: toTimeText(firstMs),
    to: toTimeText(lastMs),
    against: report.against ?? null,
    rate: report.rate,
    ...counts,
    requests,
    rules: rules.slice(0, mostInJson),
    values: values.slice(0, mostInJson).map(({ entries: _entries, ...value }) => value),
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
