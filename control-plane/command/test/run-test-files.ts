// Runs files of rule tests: from their paths to the result of each test.
import { stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { errorText } from '../../../shared/errors.ts';
import { isError, type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { buildRuleSet, type RuleSetOptions } from '../../../shared/rules/rule-set.ts';
import { leadsOut, linkOut, readRulesFiles } from '../../../shared/rules-directory.ts';
import { defaultBounds, isRulesPath } from '../../../shared/rules-file.ts';
import {
  type CoveredLimit,
  createCoverage,
} from '../../authoring/rehearsal/rule-tests/coverage.ts';
import {
  type Failure,
  runTests,
  type TestResult,
} from '../../authoring/rehearsal/rule-tests/run-tests.ts';
import { parseTestFile, type TestFile } from '../../authoring/rehearsal/rule-tests/test-file.ts';
import { updateText } from '../../authoring/rehearsal/rule-tests/update-text.ts';
import { createRulesInTime, type RulesInTime } from '../../authoring/rehearsal/rules-in-time.ts';
import { readPathInput } from '../input/path-input.ts';
import { loadRules } from '../input/rule-input.ts';
import type { RuleInputResult } from '../input/rule-texts.ts';

export interface TestedFile {
  readonly file: string;
  /** Mistakes in the file or in its rules; then no test was run. */
  readonly problems: readonly Problem[];
  readonly results: readonly TestResult[];
  /** How many values were written into the file. */
  readonly updated: number;
}

export interface TestReport {
  readonly files: readonly TestedFile[];
  /** Undefined if not requested. */
  readonly coverage: readonly CoveredLimit[] | undefined;
}

export interface TestRunOptions {
  readonly update: boolean;
  readonly coverage: boolean;
}

interface TestedRules {
  readonly documents: readonly RuleDocument[];
  readonly rules: RulesInTime;
}

type RulesResult =
  | { readonly ok: true; readonly tested: TestedRules }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export async function runTestFiles(
  paths: readonly string[],
  options: TestRunOptions,
): Promise<TestReport> {
  const coverage = createCoverage();
  /** Several files may test the same rules. */
  const known = new Map<string, Promise<RulesResult>>();
  const files: TestedFile[] = [];
  for (const path of paths) files.push(await runFile(path));
  return { files, coverage: options.coverage ? coverage.limits() : undefined };

  async function runFile(path: string): Promise<TestedFile> {
    const file = { file: path, problems: [], results: [], updated: 0 };
    if (await leadsOut(path)) return { ...file, problems: [linkOut(path)] };
    const read = await readRulesFiles([{ path }], defaultBounds);
    const [source] = read.files;
    if (source === undefined) return { ...file, problems: read.problems };
    const parsed = parseTestFile(source.text, path);
    if (!parsed.ok) return { ...file, problems: parsed.problems };
    const { testFile } = parsed;
    const rules = await findRules(testFile);
    if (!rules.ok) return { ...file, problems: rules.problems };
    coverage.add(rules.tested.documents);
    const results = runTests(testFile, {
      rules: rules.tested.rules,
      nowMs: () => performance.now(),
      reached: coverage.reached,
    });
    const ran = { ...file, results };
    return options.update ? update(ran, source.text) : ran;
  }

  function findRules(testFile: TestFile): Promise<RulesResult> {
    const { config, stats } = testFile.settings;
    const options = {
      mergeDomains: config.mergeDomains,
      sanitizeMetricDots: stats.sanitizeDots,
    };
    const paths = testFile.rules.flatMap((given) =>
      'path' in given ? [resolve(dirname(testFile.file), given.path)] : [],
    );
    if (paths.length < testFile.rules.length) return readTestedRules(testFile, options);
    const identity = JSON.stringify([options, paths]);
    const found = known.get(identity) ?? readTestedRules(testFile, options);
    known.set(identity, found);
    return found;
  }
}

async function readTestedRules(
  { file, rules, reporter }: TestFile,
  options: RuleSetOptions,
): Promise<RulesResult> {
  const documents: RuleDocument[] = [];
  const problems: Problem[] = [];
  for (const given of rules) {
    if ('document' in given) {
      documents.push(given.document);
      continue;
    }
    const { path, offset } = given;
    const shown = toShownPath(dirname(file), path);
    const read = await readNamed(shown);
    if (!read.ok) {
      const hint = 'a path is from where this file is';
      const problem = problemOf('error', 'rule-test', file, `rules: ${read.message}`, hint);
      problems.push({ ...problem, path: 'rules', ...reporter.position(offset) });
      continue;
    }
    const loaded = loadRules(read.input, options.mergeDomains);
    problems.push(...loaded.problems.filter(isError));
    documents.push(...loaded.documents);
  }
  if (problems.length > 0) return { ok: false, problems };
  const built = buildRuleSet(documents, options);
  if (!built.ok) return { ok: false, problems: built.problems };
  return { ok: true, tested: { documents, rules: createRulesInTime(documents, options) } };
}

/** The author of a test file may not be allowed to read other files of this machine. */
async function readNamed(path: string): Promise<RuleInputResult> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() && !isRulesPath(path)) {
    return { ok: false, message: `'${path}' is not named *.yaml or *.yml` };
  }
  return readPathInput([path]);
}

/** Relative if both are. */
function toShownPath(folder: string, path: string): string {
  return path.startsWith('/') || folder === '.' ? path : `${folder}/${path}`;
}

async function update(ran: TestedFile, text: string): Promise<TestedFile> {
  const failures = ran.results.flatMap((result) => result.failures);
  if (failures.length === 0) return ran;
  const updated = updateText(text, failures);
  if (updated.text !== text) {
    try {
      await writeFile(ran.file, updated.text);
    } catch (error) {
      const message = `cannot be written: ${errorText(error)}`;
      return { ...ran, problems: [problemOf('error', 'unwritable-path', ran.file, message)] };
    }
  }
  const left = new Set<Failure>(updated.left);
  const results = ran.results.map((result) => ({
    ...result,
    failures: result.failures.filter((failure) => left.has(failure)),
  }));
  return { ...ran, results, updated: failures.length - left.size };
}
