// Tests how a lift changes a rules file, as text: lift.txt.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { buildRuleSet } from '../../../shared/rules/rule-set.ts';
import { toFlowText } from '../../../shared/rules/wire/rule-object.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import { type Outcome, testScenarios } from '../../../test/support/scenarios.ts';
import { createRememberingParser, LiftRefused, type LiftsAsked, planLifts } from './lift.ts';

const timeOf = (clock: string) => Date.parse(`2026-11-24T${clock}:00Z`);
const nowMs = timeOf('17:00');

function toEntries(descriptor: string): LiftsAsked['descriptors'][number] {
  return descriptor.split(',').map((pair) => {
    const [key = '', value = ''] = pair.split('=');
    return { key, value };
  });
}

function build(texts: readonly string[], atMs = nowMs) {
  const documents = texts.flatMap((text) => parseRuleDocument(text, 'shop.yaml').document ?? []);
  const options = { mergeDomains: true, sanitizeMetricDots: false };
  const built = buildRuleSet(documents, options, atMs);
  return built.ok && documents.length === texts.length ? built.ruleSet : undefined;
}

/** The lines in which the two texts differ. */
function compare(path: string, before: string, after: string): string[] {
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  while (old.length > 0 && fresh.length > 0 && old[0] === fresh[0]) {
    old.shift();
    fresh.shift();
  }
  while (old.length > 0 && fresh.length > 0 && old.at(-1) === fresh.at(-1)) {
    old.pop();
    fresh.pop();
  }
  const show = (line: string) => line.replaceAll('\r', '\\r');
  const lines = [
    ...old.map((line) => `- ${show(line)}`),
    ...fresh.map((line) => `+ ${show(line)}`),
  ];
  return lines.length === 0 ? [] : [`${path}:`, ...lines];
}

/** `lift KEY=VALUE[,KEY=VALUE] [until=18:00] [at=17:00] [by=ann: a demo]`, `end ...`, `limits [at=17:00] KEY=VALUE ...`. */
function run([command, ...words]: readonly string[], folder: string): Outcome {
  const options = Object.fromEntries(
    words.flatMap((word) => (/^(?:until|at|by)=/.test(word) ? [word.split(/=(.*)/s)] : [])),
  );
  const descriptors = words.filter((word) => !/^(?:until|at|by)=/.test(word));
  const files = readdirSync(folder).map((path) => ({
    path,
    text: readFileSync(join(folder, path), 'utf8').replaceAll('\\r', '\r'),
  }));
  const atMs = timeOf(options.at ?? '17:00');
  if (command === 'limits') {
    const ruleSet = build(
      files.map(({ text }) => text),
      atMs,
    );
    const lines = descriptors.map((descriptor) => {
      const match = ruleSet?.domains.get('shop')?.match(toEntries(descriptor));
      const limit = match?.limit.unlimited ? 'lifted' : match?.limit.requestsPerUnit;
      return `${descriptor}: ${ruleSet === undefined ? 'invalid' : (limit ?? 'none')}`;
    });
    return { out: lines.join('\n') };
  }
  try {
    const changed = planLifts(files, {
      domain: 'shop',
      descriptors: [toEntries(descriptors[0] ?? '')],
      untilMs: command === 'end' ? undefined : timeOf(options.until ?? '18:00'),
      comment: `lifted by ${options.by ?? 'ann: a demo'}`,
      nowMs: atMs,
    });
    for (const { path, text } of changed) writeFileSync(join(folder, path), text);
    const lines = changed.flatMap(({ path, text }) =>
      compare(path, files.find((file) => file.path === path)?.text ?? '', text),
    );
    return { out: lines.join('\n') || 'nothing changes' };
  } catch (error) {
    if (error instanceof LiftRefused) return { out: '', err: error.message, code: error.status };
    throw error;
  }
}

testScenarios(test, new URL('lift.txt', import.meta.url), (words, { folder }) =>
  run(words, folder),
);

test('a rule with very many rules below it is not changed', (t) => {
  const many = Array.from(
    { length: 200 },
    (_, at) => `      - {key: p, value: v${at}, rate_limit: {unit: hour, requests_per_unit: 3}}\n`,
  );
  const text = `domain: shop\ndescriptors:\n  - key: user\n    rate_limit: {unit: hour, requests_per_unit: 1}\n    descriptors:\n${many.join('')}`;
  const asked = { domain: 'shop', untilMs: timeOf('18:00'), comment: '', nowMs };
  const lift = () =>
    planLifts([{ path: 'shop.yaml', text }], { ...asked, descriptors: [toEntries('user=ada')] });
  t.throws(lift, { message: /^.* has more than 200 rules below it/ });
});

test('whatever the values are, the lift applies to exactly them', (t) => {
  const value = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 });
  let count = 0;
  fc.assert(
    fc.property(value, value, (value, other) => {
      if (value.includes('*') || value === other) return;
      const text =
        'domain: shop\ndescriptors:\n  - {key: user, rate_limit: {unit: hour, requests_per_unit: 9}}\n';
      const entries = [{ key: 'user', value }];
      const asked = { domain: 'shop', untilMs: timeOf('18:00'), comment: '', nowMs };
      let lifted: string | undefined;
      try {
        lifted = planLifts([{ path: 'shop.yaml', text }], { ...asked, descriptors: [entries] })[0]
          ?.text;
      } catch (error) {
        // A text that YAML cannot represent is refused.
        if (error instanceof LiftRefused && error.status === 409) return;
        throw error;
      }
      const rules = build([lifted ?? ''])?.domains.get('shop');
      if (rules === undefined) throw new Error('the text is wrong');
      const isLifted = (each: string) =>
        rules.match([{ key: 'user', value: each }])?.limit.unlimited === true;
      count++;
      t.true(isLifted(value), toFlowText(value));
      t.false(isLifted(other), toFlowText(value));
    }),
    { numRuns: 200 },
  );
  t.true(count > 100, `${count} were lifted`);
});

test('a text is parsed only once for consecutive lifts', (t) => {
  const next = createRememberingParser();
  const [one, two] = [ruleText('a', 1), ruleText('a', 2)];
  const first = next()(one, 'a.yaml');
  const second = next();
  t.is(second(one, 'a.yaml'), first);
  t.not(second(one, 'b.yaml'), first, 'its problems name it');
  t.not(next()(two, 'a.yaml'), first);
  t.not(next()(one, 'a.yaml'), first, 'the lift before did not have it');
});
