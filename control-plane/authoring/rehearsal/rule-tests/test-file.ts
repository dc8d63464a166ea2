// Reads one file of rule tests and reports all its mistakes at once. test-keys.ts has the keys and their meanings;
// test-request.ts reads requests and expected answers.

import { readRuleDocument } from '../../../../shared/rules/document/document.ts';
import type { Problem } from '../../../../shared/rules/problem/problem.ts';
import type { Reporter } from '../../../../shared/rules/problem/reporter.ts';
import type { RuleDocument } from '../../../../shared/rules/rule-document.ts';
import { parseTime } from '../../../../shared/rules/rule-end.ts';
import {
  joinPath,
  type MapReader,
  readMap,
  reportKind,
} from '../../../../shared/rules/yaml/map-reader.ts';
import type { TreeEntry, TreeMap, TreeNode } from '../../../../shared/rules/yaml/yaml-node.ts';
import { parseYamlTree } from '../../../../shared/rules/yaml/yaml-tree.ts';
import { toExcerpt } from '../../../../shared/text-excerpt.ts';
import { parseWorkerSettings, type WorkerSettings } from '../../../../worker/settings.ts';
import { defaultClock, settingNames, statisticNames, testKeysAt } from './test-keys.ts';
import { type Ask, type Expectation, readAsks, toExpectation } from './test-request.ts';

export interface TestFile {
  readonly file: string;
  readonly rules: readonly GivenRules[];
  readonly settings: WorkerSettings;
  readonly tests: readonly RuleTest[];
  /** Receives the problems that a run finds. */
  readonly reporter: Reporter;
}

/** A path as written, with its position, or a document within the file. */
export type GivenRules =
  | { readonly path: string; readonly offset: number }
  | { readonly document: RuleDocument };

export interface RuleTest {
  readonly name: string;
  readonly offset: number;
  readonly path: string;
  /** Wall time in milliseconds. */
  readonly clockMs: number;
  readonly asks: readonly Ask[];
  readonly statistics: readonly StatisticExpectation[];
}

export interface StatisticExpectation extends Expectation {
  readonly metricKey: string;
}

export type TestFileResult =
  | { readonly ok: true; readonly testFile: TestFile }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export function parseTestFile(text: string, file: string): TestFileResult {
  const { root, reporter } = parseYamlTree(text, file);
  const fields = root && readMap(root, '', 'the document', reporter);
  const read = fields && (isRules(fields) ? refuseRules(fields) : readFile(fields, file));
  return read === undefined || reporter.hasErrors
    ? { ok: false, problems: reporter.toProblems() }
    : { ok: true, testFile: read };
}

function isRules(fields: MapReader): boolean {
  return fields.has('domain') && fields.has('descriptors') && !fields.has('tests');
}

/** Reports one problem instead of one for each key. */
function refuseRules(fields: MapReader): undefined {
  const hint = "tests of it name it: 'rules: PATH'";
  fields.errorOfAll('foreign-document', 'the document has rules, and no tests of them', hint);
}

function readFile(fields: MapReader, file: string): TestFile | undefined {
  const { reporter } = fields;
  const meant = fields.refuseOthers(testKeysAt('file'));
  const rules = readRules(fields, file);
  if (!fields.has('rules') && !meant.has('rules')) {
    const hint = "name a file or a folder, from where this file is: 'rules: ../rules'";
    fields.errorOfAll('rule-test', 'the file names no rules', hint);
  }
  const settings = readSettings(fields);
  const tests = fields.maps('tests').map(readTest);
  if (!fields.has('tests') && !meant.has('tests')) {
    fields.errorOfAll('rule-test', 'the file has no tests', "begin the list with 'tests:'");
  } else if (fields.find('tests')?.kind === 'list' && tests.length === 0) {
    fields.error('rule-test', 'tests', 'there are no tests');
  }
  return settings && { file, rules, settings, tests, reporter };
}

function readRules(fields: MapReader, file: string): GivenRules[] {
  const node = fields.find('rules');
  if (node === undefined) return [];
  const path = fields.pathOf('rules');
  const items = node.kind === 'list' ? node.items : [node];
  return items.flatMap((item): GivenRules[] => {
    if (item.kind === 'map') return [{ document: readRuleDocument(item, file, fields.reporter) }];
    if ('source' in item && item.source !== '') return [{ path: item.source, offset: item.offset }];
    const wanted = 'a path, or a document of rules';
    reportKind({ node: item, path }, 'rules', wanted, fields.reporter);
    return [];
  });
}

function readSettings(fields: MapReader): WorkerSettings | undefined {
  const worker = fields.map('worker');
  worker?.refuseOthers(settingNames);
  const given = settingNames.flatMap((name) => {
    const text = worker?.has(name) ? worker.text(name) : undefined;
    return text === undefined ? [] : [[name, text] as const];
  });
  const read = parseWorkerSettings({ BACKEND_TYPE: 'memory', ...Object.fromEntries(given) });
  if (read.ok) return read.settings;
  for (const problem of read.problems) {
    const [name = ''] = given.find(([each]) => problem.includes(each)) ?? [];
    worker?.error('rule-test', name, problem);
  }
  return undefined;
}

function readTest(fields: MapReader): RuleTest {
  const { node, path } = fields;
  const meant = fields.refuseOthers(testKeysAt('test'));
  const name = fields.text('name') ?? '';
  if (name === '' && !meant.has('name')) {
    fields.errorOfAll(
      'rule-test',
      'the test has no name',
      "state the claim of the test: 'name: ...'",
    );
  }
  const clockMs = readClock(fields);
  const requests = readRequests(fields);
  const domain = meant.has('domain') ? undefined : (fields.text('domain') ?? '');
  const asks = readAsks(requests, domain, clockMs);
  const statistics = readStatistics(fields);
  const isEmpty = requests.length === 0 && meant.size === 0;
  if (isEmpty && !fields.has('requests') && !fields.has('rows')) {
    const hint = "write 'requests:', or 'columns:' and 'rows:'";
    fields.errorOfAll('rule-test', 'the test has no requests', hint);
  }
  return { name, offset: node.offset, path, clockMs, asks, statistics };
}

function readClock(fields: MapReader): number {
  const text = fields.text('clock') || defaultClock;
  const clockMs = parseTime(text);
  if (clockMs !== undefined) return clockMs;
  const message = `clock is '${toExcerpt(text)}', not a time`;
  fields.error('rule-test', 'clock', message, `write it as ${defaultClock}`);
  return 0;
}

/** Converts rows to the requests that they stand for. */
function readRequests(fields: MapReader): readonly MapReader[] {
  const { reporter } = fields;
  if (!fields.has('columns') && !fields.has('rows')) return fields.maps('requests');
  if (fields.has('requests')) {
    const message = 'requests and rows exclude each other';
    fields.error('rule-test', 'requests', message, 'make two tests of it');
    return [];
  }
  for (const name of ['columns', 'rows']) {
    if (!fields.has(name)) fields.errorOfAll('rule-test', `the test has no ${name}`);
  }
  const columns = readColumns(fields);
  if (columns.length === 0) return [];
  return fields.items('rows').flatMap(({ node, path }) => {
    if (node.kind !== 'list') {
      reportKind({ node, path }, 'a row', 'a list of cells', reporter);
      return [];
    }
    const extra = node.items[columns.length];
    if (extra !== undefined) {
      const message = `the row has ${node.items.length} cells, and there are ${columns.length} columns`;
      reporter.error('rule-test', extra.offset, path, message);
      return [];
    }
    return readMap(toRequest(columns, node.items, node.offset), path, 'a row', reporter) ?? [];
  });
}

interface Column {
  readonly node: TreeNode & { readonly source: string };
  /** The key of an entry; undefined for a key of the request. */
  readonly entryKey: string | undefined;
}

/** The keys whose values do not fit in a cell. */
const collections = ['descriptor', 'descriptors', 'statuses'];

function readColumns(fields: MapReader): Column[] {
  const known = testKeysAt('request').filter((key) => !collections.includes(key));
  const seen = new Set<string>();
  return fields.items('columns').flatMap(({ node, path }): Column[] => {
    if (!('source' in node)) {
      reportKind({ node, path }, 'a column', 'text', fields.reporter);
      return [];
    }
    const { source: name, offset } = node;
    const report = (message: string, hint?: string) =>
      fields.reporter.error('rule-test', offset, path, message, hint);
    if (seen.has(name)) report(`column '${toExcerpt(name)}' appears twice`);
    seen.add(name);
    if (name.length > 1 && name.endsWith('=')) return [{ node, entryKey: name.slice(0, -1) }];
    if (!known.includes(name)) {
      const guess = fields.reporter.nearestWord(name, known);
      const entry = `for the value of an entry write '${toExcerpt(name)}='`;
      const hint = guess === undefined ? entry : `did you mean '${guess}'? ${entry}`;
      report(`unknown column '${toExcerpt(name)}'`, hint);
    }
    return [{ node, entryKey: undefined }];
  });
}

/** The mapping that an author would write in place of a row. */
function toRequest(
  columns: readonly Column[],
  cells: readonly TreeNode[],
  offset: number,
): TreeMap {
  const entries = new Map<string, TreeEntry>();
  const descriptor = new Map<string, TreeEntry>();
  cells.forEach((value, index) => {
    const column = columns[index];
    if (column === undefined) return;
    const { source, offset: keyOffset } = column.node;
    const name = column.entryKey ?? source;
    const key = {
      kind: 'text',
      value: name,
      source: name,
      isQuoted: false,
      offset: keyOffset,
    } as const;
    if (column.entryKey === undefined) entries.set(name, { key, value });
    else if (value.kind !== 'null') descriptor.set(name, { key, value });
  });
  const source = 'descriptor';
  const key = { kind: 'text', value: source, source, isQuoted: false, offset } as const;
  entries.set(source, { key, value: { kind: 'map', entries: descriptor, offset } });
  return { kind: 'map', entries, offset };
}

function readStatistics(fields: MapReader): StatisticExpectation[] {
  const all = fields.map('statistics');
  if (all === undefined) return [];
  return [...all.node.entries.keys()].flatMap((metricKey) => {
    const counts = all.map(metricKey);
    if (counts === undefined) return [];
    counts.refuseOthers(statisticNames);
    return statisticNames.flatMap((name) => {
      const value = counts.node.entries.get(name)?.value;
      if (value === undefined) return [];
      const count = counts.count(name, Number.MAX_SAFE_INTEGER);
      const path = joinPath(counts.path, name);
      return [{ metricKey, ...toExpectation(name, value, path, count?.toString()) }];
    });
  });
}
