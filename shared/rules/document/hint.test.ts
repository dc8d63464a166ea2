// Tests that hints are correct: with the mistake replaced by the text that a hint shows, the document is accepted.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { testScenarios } from '../../../test/support/scenarios.ts';
import { parseRuleDocument } from './document.ts';

const limit = 'rate_limit: {unit: minute, requests_per_unit: 3}';

/** The text that stands in quotes after the last word that introduces it, or in braces at the end. */
function shownIn(hint: string): string | undefined {
  const asked = /(?:did you mean|such as|write|in quotes:)[^']*('([^']*)')/.exec(hint);
  if (asked !== null) return hint.includes('in quotes') ? asked[1] : asked[2];
  return /: ([[{].*)$/.exec(hint)?.[1] ?? /(?:without quotes|in digits): (\S+)$/.exec(hint)?.[1];
}

testScenarios(test, new URL('hints.txt', import.meta.url), ([, wrong = ''], { folder }) => {
  const yaml = readFileSync(join(folder, 'rules.yaml'), 'utf8');
  const [problem] = parseRuleDocument(yaml, 'rules.yaml').problems;
  const shown = shownIn(problem?.hint ?? '') ?? '';
  const repaired = parseRuleDocument(yaml.replace(wrong, shown), 'rules.yaml');
  const isLeft = repaired.problems.some(({ message }) => message === problem?.message);
  const outcome = repaired.document !== undefined && !isLeft ? 'accepted' : 'refused again';
  return { out: `${problem?.message}\nhint: ${problem?.hint}\n${shown} is ${outcome}` };
});

test('no hint shows a value with a star for a regular expression that none can replace', (t) => {
  const hintFor = (value: string) => {
    const yaml = `domain: shop\ndescriptors:\n  - key: a\n    value: ${value}\n    ${limit}\n`;
    return parseRuleDocument(yaml, 'shop.yaml').problems.map(({ hint }) => hint);
  };
  const star = "a '*' stands for any characters";
  const each = `${star}; write one rule for each alternative`;
  const longest = 'x'.repeat(58);
  t.deepEqual(hintFor('^/(api|web)/.*$'), [each]);
  t.deepEqual(hintFor(`^/${longest}.*$`), [`${star}: write '/${longest}*'`]);
  t.deepEqual(hintFor(`^/x${longest}.*$`), [each]);
});

test('a unit that is written as authors shorten it, with a number or without', (t) => {
  const hintFor = (unit: string) => {
    const yaml = `domain: shop\ndescriptors:\n  - key: k\n    rate_limit: {unit: ${unit}, requests_per_unit: 1}\n`;
    return parseRuleDocument(yaml, 'shop.yaml').problems.map(({ hint }) => hint)[0];
  };
  const allowed = 'allowed are second, minute, hour, day, week, month and year';
  const guesses = {
    hr: 'hour',
    hrs: 'hour',
    mins: 'minute',
    Sec: 'second',
    daily: 'day',
    yr: 'year',
  };
  for (const [unit, meant] of Object.entries(guesses)) {
    t.is(hintFor(unit), `did you mean '${meant}'? ${allowed}`, unit);
  }
  t.is(hintFor('5 minutes'), 'write unit: minute and unit_multiplier: 5');
  t.is(hintFor('2wks'), 'write unit: week and unit_multiplier: 2');
  t.is(hintFor('1h'), "write 'hour'");
  // Milliseconds are no minutes.
  t.is(hintFor('5ms'), allowed);
  t.is(hintFor('3'), "write 'hour', whose number in messages is 3");
});
