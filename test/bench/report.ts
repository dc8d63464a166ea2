// The results as tables, for the terminal and as Markdown.
import type { Machine } from './machine.ts';
import type { BenchResults } from './results.ts';
import { type SummaryRow, summarize } from './summary.ts';

interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Displayed below the table. */
  readonly notes: readonly string[];
}

export function renderText(results: BenchResults): string {
  const lines = [describe(results), ''];
  for (const table of createTables(results)) {
    const widths = table.columns.map((column, index) =>
      Math.max(column.length, ...table.rows.map((row) => row[index]?.length ?? 0)),
    );
    const line = (cells: readonly string[]) =>
      cells
        .map((cell, index) => {
          const width = widths[index] ?? 0;
          return isText(table, index) ? cell.padEnd(width) : cell.padStart(width);
        })
        .join('  ')
        .trimEnd();
    lines.push(table.title, line(table.columns), ...table.rows.map(line));
    lines.push(...table.notes.map((note) => `  ! ${note}`), '');
  }
  return lines.join('\n');
}

export function renderMarkdown(results: BenchResults): string {
  const lines = [`<!-- Written by npm run bench. -->`, '', describe(results), ''];
  // The yardstick is part of each ratio. Its own rows are only in results.json.
  const isShown = ({ service }: { readonly service: string }) => service !== results.yardstick;
  const rows = summarize(results.measurements, results.yardstick).filter(isShown);
  const highestRates = results.highestRates.filter(isShown);
  for (const full of createTables({ ...results, highestRates }, rows)) {
    const table = toPageTable(full);
    const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
    lines.push(`### ${table.title}`, '', line(table.columns));
    lines.push(line(table.columns.map((_, index) => (isText(table, index) ? '---' : '---:'))));
    lines.push(...table.rows.map(line), '');
    for (const note of table.notes) lines.push(`- ${note}`);
    if (table.notes.length > 0) lines.push('');
  }
  return lines.join('\n');
}

/** Omits the service if there is only one, and at fixed rates what the notes and the other table contain. */
function toPageTable(table: Table): Table {
  const isShown = table.columns.map((column, at) => {
    if (column === 'service') return new Set(table.rows.map((row) => row[at])).size !== 1;
    return table.title !== offeredTitle || !['send lag p99 ms', 'RSS MB'].includes(column);
  });
  const choose = (cells: readonly string[]) => cells.filter((_, at) => isShown[at]);
  return { ...table, columns: choose(table.columns), rows: table.rows.map(choose) };
}

export function describeMachineLine(machine: Machine): string {
  const memory = `${Math.round(machine.memoryBytes / 2 ** 30)} GiB`;
  const commit = machine.commit === undefined ? '' : `, commit ${machine.commit}`;
  return `${machine.processor}, ${machine.cores} cores, ${memory}, ${machine.kernel}, Node ${machine.node}${commit}, ${machine.date}`;
}

const otherWorkLimit = 0.1;
const offeredTitle = 'At fixed rates';

function describe(results: BenchResults): string {
  const { rounds, measuredMs, connections, streams, otherWork } = results;
  const warning =
    otherWork > otherWorkLimit
      ? ` Other work took ${(otherWork * 100).toFixed(0)} % of the machine before the run: repeat it when the machine is idle.`
      : '';
  return (
    `${describeMachineLine(results.machine)}; ${results.processors}. ` +
    `Medians of ${rounds} rounds of ${measuredMs / 1000} s; ${connections} connections of ${streams} streams. ` +
    `CPU is that of the service; "of grpc-js" is its part of what a @grpc/grpc-js server with a constant answer spends in the same round.${warning}`
  );
}

function createTables(
  results: BenchResults,
  rows = summarize(results.measurements, results.yardstick),
): readonly Table[] {
  const tables: Table[] = [];
  const saturated = rows.filter((row) => row.ratePerSecond === undefined);
  const offered = rows.filter((row) => row.ratePerSecond !== undefined);
  if (saturated.length > 0) tables.push(createSaturationTable(saturated));
  if (offered.length > 0) tables.push(createOfferedTable(offered));
  if (results.roundTrips.length > 0) tables.push(createRoundTripTable(results));
  if (results.highestRates.length > 0) tables.push(createHighestRateTable(results));
  if (results.soak !== undefined) tables.push(createSoakTable(results.soak));
  return tables;
}

function createSaturationTable(rows: readonly SummaryRow[]): Table {
  return {
    title: 'At saturation',
    columns: [
      'scenario',
      'service',
      'decisions/s',
      'CPU us',
      '+-',
      'of grpc-js',
      'p99 ms',
      'RSS MB',
      'store commands, 1st half',
      '2nd half',
    ],
    rows: rows.map((row) => [
      row.scenario,
      row.service,
      toCount(row.decisionsPerSecond),
      row.cpuPerDecisionUs.toFixed(2),
      `${(row.cpuSpread * 100).toFixed(0)} %`,
      toPart(row.cpuRatio),
      toMs(row.p99Us),
      toMegabytes(row.residentBytes),
      toCommands(row.storeCommands.firstHalf),
      toCommands(row.storeCommands.secondHalf),
    ]),
    notes: listProblems(rows),
  };
}

function createOfferedTable(rows: readonly SummaryRow[]): Table {
  return {
    title: offeredTitle,
    columns: [
      'scenario',
      'offered/s',
      'service',
      'CPU us',
      'of grpc-js',
      'p99 ms',
      'p99.9 ms',
      'send lag p99 ms',
      'RSS MB',
    ],
    rows: rows.map((row) => [
      row.scenario,
      toCount(row.ratePerSecond ?? 0),
      row.service,
      row.cpuPerDecisionUs.toFixed(1),
      toPart(row.cpuRatio),
      toMs(row.p99Us),
      toMs(row.p999Us),
      toMs(row.sendLagP99Us ?? Number.NaN),
      toMegabytes(row.residentBytes),
    ]),
    notes: listProblems(rows),
  };
}

function createRoundTripTable({ roundTrips }: BenchResults): Table {
  return {
    title: 'Store commands for each decision, by the round trip to the store',
    columns: [
      'round trip ms',
      'service',
      'one key, saturated',
      'decisions/s',
      'p99 ms',
      '10,000 keys, new',
      'the same, known',
    ],
    rows: roundTrips.map((one) => [
      String(one.roundTripMs),
      one.service,
      one.oneKey.commandsPerDecision.toFixed(3),
      toCount(one.oneKey.decisionsPerSecond),
      toMs(one.oneKey.p99Us),
      one.manyKeys.whenNew.toFixed(3),
      one.manyKeys.whenKnown.toFixed(3),
    ]),
    notes: roundTrips.flatMap((one) =>
      one.problems.map((problem) => `${one.roundTripMs} ms, ${one.service}: ${problem}`),
    ),
  };
}

function createHighestRateTable({ highestRates }: BenchResults): Table {
  return {
    title: 'The highest offered rate that keeps p99 low',
    columns: [
      'scenario',
      'service',
      'limit ms',
      'offered/s',
      'p99 ms',
      'send lag p99 ms',
      'ended by',
    ],
    rows: highestRates.map((one) => [
      one.scenario,
      one.service,
      toMs(one.p99LimitUs),
      one.ratePerSecond === undefined ? '-' : toCount(one.ratePerSecond),
      toMs(one.p99Us ?? Number.NaN),
      toMs(one.sendLagP99Us ?? Number.NaN),
      one.endedBy,
    ]),
    notes: [],
  };
}

function createSoakTable(soak: NonNullable<BenchResults['soak']>): Table {
  const { residentBytes } = soak;
  return {
    title: 'The long run',
    columns: [
      'scenario',
      'service',
      'offered/s',
      'decisions',
      'CPU us',
      'p99 ms',
      'p99.9 ms',
      'send lag p99 ms',
      'RSS MB, 1st quarter',
      '3rd',
      'last',
      'peak',
    ],
    rows: [
      [
        soak.scenario,
        soak.service,
        toCount(soak.ratePerSecond),
        toCount(soak.decisions),
        soak.cpuPerDecisionUs.toFixed(1),
        toMs(soak.p99Us),
        toMs(soak.p999Us),
        toMs(soak.sendLagP99Us ?? Number.NaN),
        toMegabytes(residentBytes.firstQuarter),
        toMegabytes(residentBytes.thirdQuarter),
        toMegabytes(residentBytes.lastQuarter),
        toMegabytes(residentBytes.peak),
      ],
    ],
    notes: soak.problems,
  };
}

/** Columns of text are aligned left, those of numbers right. */
function isText(table: Table, index: number): boolean {
  return ['scenario', 'service', 'ended by'].includes(table.columns[index] ?? '');
}

function listProblems(rows: readonly SummaryRow[]): string[] {
  return rows.flatMap((row) =>
    row.problems.map((problem) => {
      const load =
        row.ratePerSecond === undefined ? 'saturation' : `${toCount(row.ratePerSecond)}/s`;
      return `${row.scenario}, ${load}, ${row.service}: ${problem}`;
    }),
  );
}

const toCommands = (value: number): string => (value > 0 ? value.toFixed(3) : '-');
const toCount = (value: number): string => Math.round(value).toLocaleString('en-US');
const toMegabytes = (bytes: number): string => (bytes / 1e6).toFixed(0);

function toMs(us: number): string {
  return Number.isNaN(us) ? '-' : (us / 1000).toFixed(2);
}

/** A ratio below one is formatted as a fraction 1/N, like the goals. */
export function toPart(ratio: number | undefined): string {
  if (ratio === undefined || Number.isNaN(ratio)) return '-';
  return ratio < 0.5 ? `1/${(1 / ratio).toFixed(1)}` : ratio.toFixed(2);
}
