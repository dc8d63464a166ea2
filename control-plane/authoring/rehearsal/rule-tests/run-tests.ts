// Runs the tests of a file, each in its own rehearsal, and compares the answers with the expected ones.
import { formatDuration } from '../../../../shared/duration.ts';
import type { LocatedRule } from '../../../../shared/rules/lookup/located-rule.ts';
import { sanitizeMetricName } from '../../../../shared/rules/lookup/metric-key.ts';
import { type Problem, problemOf } from '../../../../shared/rules/problem/problem.ts';
import type { Entry } from '../../../../shared/rules/rule.ts';
import { toTimeText } from '../../../../shared/rules/rule-end.ts';
import { toExcerpt } from '../../../../shared/text-excerpt.ts';
import { codeNames, type RateLimitRequest } from '../../../../worker/decision/message.ts';
import { explainLookup } from '../../explain/lookup-explanation.ts';
import { createRehearsal, type Rehearsal, type RehearsedDecision } from '../rehearsal.ts';
import type { RulesInTime } from '../rules-in-time.ts';
import type { RuleTest, TestFile } from './test-file.ts';
import type { ExpectedKey } from './test-keys.ts';
import type { Ask, Expectation } from './test-request.ts';

export interface TestResult {
  readonly file: string;
  readonly name: string;
  /** 1-based. */
  readonly line: number | undefined;
  /** One for each expectation that does not hold. */
  readonly failures: readonly Failure[];
  readonly durationMs: number;
}

export interface Failure {
  /** Human-readable. */
  readonly problem: Problem;
  /** In YAML notation; undefined where there is no answer. */
  readonly actual: string | undefined;
  /** The position of the expected value. */
  readonly offset: number;
}

export interface RunOptions {
  readonly rules: RulesInTime;
  /** Milliseconds, for measuring durations. */
  readonly nowMs: () => number;
  /** Called with each rule whose limit applied to a request, once per request. */
  readonly reached: (rule: LocatedRule) => void;
}

export function runTests(testFile: TestFile, options: RunOptions): readonly TestResult[] {
  return testFile.tests.map((test) => {
    const beganMs = options.nowMs();
    const failures = runTest(testFile, test, options);
    const line = testFile.reporter.position(test.offset)?.line;
    const durationMs = options.nowMs() - beganMs;
    return { file: testFile.file, name: test.name, line, failures, durationMs };
  });
}

function runTest(testFile: TestFile, test: RuleTest, options: RunOptions): readonly Failure[] {
  const { settings } = testFile;
  const first = options.rules(test.clockMs);
  if (!first.ok) {
    const [problem] = first.problems;
    const message = `a worker refuses these rules at ${toTimeText(test.clockMs)}: ${problem?.message}`;
    return [fail(testFile, test, message, undefined, undefined)];
  }
  const rehearsal = createRehearsal({ rules: options.rules, settings, startMs: test.clockMs });
  const failures = test.asks.flatMap((ask, index) =>
    runAsk(testFile, ask, index, rehearsal, options),
  );
  if (test.statistics.length === 0) return failures;
  const statistics = rehearsal.statistics();
  const wrong = test.statistics.flatMap((expectation) => {
    const { metricKey, name } = expectation;
    const full = `ratelimit.service.rate_limit.${sanitizeMetricName(metricKey)}.${name}`;
    const actual = statistics.get(full) ?? 0;
    return compare(testFile, expectation, String(actual), `of ${toExcerpt(metricKey, 200)}`);
  });
  return [...failures, ...wrong];
}

function runAsk(
  testFile: TestFile,
  ask: Ask,
  index: number,
  rehearsal: Rehearsal,
  { reached }: RunOptions,
): readonly Failure[] {
  const { request, atMs, expected } = ask;
  let decision = rehearsal.decide(request, atMs);
  for (let time = 1; time < ask.times; time++) decision = rehearsal.decide(request, atMs);
  const rules = findRules(request, decision, rehearsal);
  for (const found of rules) if (found !== undefined) reached(found.rule);
  const { outcome } = decision;
  if (!outcome.ok) {
    const message = `there is no answer: ${outcome.error.message}`;
    return [fail(testFile, { offset: ask.offset, path: '' }, message, undefined, undefined)];
  }
  if (expected.length === 0) return [];
  const { overallCode, statuses } = outcome.response;
  const about = (descriptor: number | undefined) =>
    [
      describeAsk(ask, index, descriptor),
      ...explain(request, decision, descriptor, rehearsal),
    ].join('; ');
  return expected.flatMap((expectation) => {
    const { name, descriptor } = expectation;
    const status = statuses[descriptor ?? 0];
    const match = decision.matches[descriptor ?? 0];
    if (status === undefined) return [];
    const isUnlimited = match?.limit.unlimited === true;
    const isLimited = match !== undefined && !isUnlimited;
    const answers: Readonly<Record<ExpectedKey, () => string>> = {
      code: () => codeNames[descriptor === undefined ? overallCode : status.code],
      remaining: () =>
        isUnlimited ? 'unlimited' : isLimited ? String(status.limitRemaining) : 'none',
      reset: () => (isLimited ? String(status.secondsUntilReset ?? 'none') : 'none'),
      rule: () => rules[descriptor ?? 0]?.name ?? 'none',
      metric_key: () => match?.metricKey ?? 'none',
    };
    return compare(testFile, expectation, answers[name](), about(descriptor));
  });
}

function findRules(request: RateLimitRequest, { matches }: RehearsedDecision, rules: Rehearsal) {
  return request.descriptors.map(({ entries }, index) => {
    const match = matches[index];
    return match && rules.find(request.domain, entries, match);
  });
}

/** `about` names the answer or statistic. */
function compare(
  testFile: TestFile,
  expectation: Expectation,
  actual: string,
  about: string,
): readonly Failure[] {
  const { name, wanted } = expectation;
  if (wanted === actual) return [];
  const written = toWritten(name, actual);
  const message =
    wanted === undefined
      ? `${name} is ${toExcerpt(written, 200)}, and nothing is expected; --update writes it`
      : `${name} is ${toExcerpt(written, 200)}, not ${toExcerpt(toWritten(name, wanted), 200)}`;
  return [fail(testFile, expectation, message, about, written)];
}

/** The value as an author writes it. */
function toWritten(name: string, value: string): string {
  return name === 'reset' && value !== 'none' ? formatDuration(Number(value) * 1000) : value;
}

/** Why no limit applies, where none does. */
function explain(
  { domain, descriptors }: RateLimitRequest,
  { matches }: RehearsedDecision,
  descriptor: number | undefined,
  rehearsal: Rehearsal,
): readonly string[] {
  const index = descriptor ?? 0;
  if (matches[index] !== undefined || (descriptor === undefined && descriptors.length > 1))
    return [];
  const rules = rehearsal.rules().located.get(domain);
  if (rules === undefined)
    return [`no limit applies: there are no rules for domain '${toExcerpt(domain)}'`];
  const { rule, verdict } = explainLookup(rules, descriptors[index]?.entries ?? []);
  return [rule === undefined ? verdict : 'no limit applies: another rule replaces it'];
}

function describeAsk({ request, atMs, times }: Ask, index: number, descriptor = 0): string {
  const entries = request.descriptors[descriptor]?.entries ?? [];
  const often = times > 1 ? `, asked ${times} times` : '';
  return `request ${index + 1}: ${toText(entries)} at ${toTimeText(atMs)}${often}`;
}

function toText(entries: readonly Entry[]): string {
  return toExcerpt(entries.map(({ key, value }) => `${key}=${value}`).join(' '), 200);
}

function fail(
  { file, reporter }: TestFile,
  { offset, path }: { readonly offset: number; readonly path: string },
  message: string,
  hint: string | undefined,
  actual: string | undefined,
): Failure {
  const problem = problemOf('error', 'failed-test', file, message, hint);
  return { problem: { ...problem, path, ...reporter.position(offset) }, actual, offset };
}
