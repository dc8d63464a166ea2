// Reads nonsensical rules documents: each problem has its position, and accepted documents can be put in force, advised
// on and sent to workers.
import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { adviseOnRules } from '../../control-plane/authoring/advice/rule-advice.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import { advisoryRules } from '../../shared/rules/problem/problem-rule.ts';
import { formatProblem } from '../../shared/rules/problem/problem-text.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { fromResource, toResource } from '../../shared/rules/wire/resource.ts';
import type { Random } from '../support/random.ts';
import { damageText, strangeWords } from './damage.ts';
import dictionary from './dictionary.json' with { type: 'json' };
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const fixtures = new URL('../fixtures/rules/', import.meta.url);
function readSamples(folder: string): string[] {
  return readdirSync(new URL(folder, fixtures))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => readFileSync(new URL(`${folder}/${name}`, fixtures), 'utf8'));
}

const goodSamples = [...readSamples('good'), ...readSamples('warned')];
const samples = [...goodSamples, ...readSamples('bad')];

const words: readonly string[] = dictionary.rules;

function toSample(random: Random): string {
  if (random.chance(0.2)) {
    // Generated from nothing: every token may be next to every other.
    return Array.from({ length: random.below(40) }, () =>
      random.pick(random.chance(0.1) ? strangeWords : words),
    ).join('');
  }
  const sample = random.pick(random.chance(0.7) ? goodSamples : samples);
  return damageText(random, random.chance(0.2) ? sample + random.pick(samples) : sample, words);
}

function checkProblem(problem: Problem, text: string): void {
  const { line, column, hint, message } = problem;
  const shown = formatProblem(problem);
  if (line !== undefined && (line < 1 || line > text.split('\n').length)) {
    throw new Error(`a place that is not in the text: ${shown}`);
  }
  if (column !== undefined && column < 1) throw new Error(`column ${column}: ${shown}`);
  checkNamedProblem(message);
  if (hint !== undefined) checkNamedProblem(hint);
  if (shown.length > 2000) throw new Error(`${shown.length} characters for one problem`);
  // The line with the number of further problems has no kind.
  const isRest = /^and \d+ more/.test(message);
  if (!isRest && problem.rule === 'other') throw new Error(`a problem of no kind: ${shown}`);
}

/** Everything that happens to an accepted document; throws when something is impossible. */
function use(document: RuleDocument): void {
  for (const mergeDomains of [false, true]) {
    const options = { mergeDomains, sanitizeMetricDots: mergeDomains };
    const built = buildRuleSet([document, document], options);
    for (const problem of built.ok ? built.warnings : built.problems)
      checkNamedProblem(problem.message);
  }
  const built = buildRuleSet([document], { mergeDomains: false, sanitizeMetricDots: false });
  if (!built.ok) {
    for (const problem of built.problems) checkNamedProblem(formatProblem(problem));
    return;
  }
  built.ruleSet.describe();
  for (const problem of adviseOnRules([document])) checkNamedProblem(formatProblem(problem));
  const rules = built.ruleSet.domains.get(document.domain);
  for (const { key, value } of document.descriptors) {
    const entries = [{ key, value: value.replaceAll('*', 'x') }];
    rules?.match(entries);
    rules?.traceLookup(entries);
  }
  const { message } = toResource(document, { withExtensions: true });
  const back = fromResource(message, document.file);
  if (back.document === undefined) {
    const [problem] = back.problems;
    throw new Error(`no worker would take it: ${problem && formatProblem(problem)}`);
  }
}

test.serial('any document is accepted for use, or refused with positions', async (t) => {
  let accepted = 0;
  let refused = 0;
  await fuzz(t, 'rules documents', (random) => {
    const text = toSample(random);
    const { document, problems } = parseRuleDocument(text, 'rules.yaml');
    for (const problem of problems) checkProblem(problem, text);
    const errors = problems.filter(({ severity }) => severity === 'error').length;
    if (errors > 101 || problems.length > 101 * (1 + advisoryRules.length))
      throw new Error(`${problems.length} problems`);
    const hasErrors = problems.some(({ severity }) => severity === 'error');
    if (hasErrors === (document !== undefined)) throw new Error('neither accepted nor refused');
    if (document === undefined) refused++;
    else {
      accepted++;
      use(document);
    }
  });
  t.log(`${accepted} accepted, ${refused} refused`);
  t.true(accepted > 0 && refused > 0);
});
