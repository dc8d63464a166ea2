// The content of a policy file, and its effect on changes: policy.txt.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import test from 'ava';
import { parse } from 'yaml';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { formatProblem, formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { type Outcome, testScenarios } from '../../../test/support/scenarios.ts';
import { toSettingLines } from '../../../test/support/setting-lines.ts';
import { parsePolicy } from '../../authoring/policy/policy-file.ts';
import { formatPolicySchema } from '../../authoring/policy/policy-keys.ts';
import { buildSnapshots } from './build.ts';
import type { GovernedRules } from './makers.ts';
import { judgingByPolicy } from './policy-guard.ts';

const encode = loadProtos().rateLimitConfig.serialize;
const isValid = new Ajv({ allErrors: true, strictTypes: false }).compile(
  JSON.parse(formatPolicySchema()),
);

function readGoverned(folder: string): GovernedRules {
  const files = readdirSync(folder).map((path) => ({
    path,
    text: readFileSync(join(folder, path), 'utf8'),
  }));
  const options = { mergeDomains: false, maxResponseBytes: 1_000_000 };
  const outcome = buildSnapshots({ files, problems: [] }, options, { encode });
  if (!outcome.ok) throw new Error(outcome.problems.map(formatProblem).join('\n'));
  return outcome.built;
}

/** The policy or its problems, and whether its schema accepts it. */
function read(text: string): Outcome {
  const { policy, problems } = parsePolicy(text);
  const schema = `the schema ${isValid(parse(text)) ? 'accepts' : 'refuses'} it`;
  const lines = policy === undefined ? [] : toSettingLines(policy);
  return { out: [...lines, schema].join('\n'), err: formatProblems(problems) };
}

/** The tolerated problems, then the refused ones as errors. */
function judge(folder: string, words: readonly string[]): Outcome {
  const info = Object.fromEntries(words.map((word) => word.split(/=(.*)/s)));
  const after = readGoverned(join(folder, 'after'));
  const message = info.message && `x\n\n${info.message}`;
  const steps = [{ makers: [{ author: info.author, message }], changed: undefined }];
  const { refused, tolerated, exception } = runAtOnce(
    judgingByPolicy(
      words.includes('first') ? undefined : readGoverned(join(folder, 'before')),
      after,
      { steps, isUndo: words.includes('undo') },
    ),
  );
  const by = exception === undefined ? '' : `exception: ${exception}\n`;
  return { out: by + formatProblems(tolerated), err: formatProblems(refused) };
}

testScenarios(test, new URL('policy.txt', import.meta.url), ([command, ...words], { folder }) =>
  command === 'read'
    ? read(readFileSync(join(folder, 'policy.yaml'), 'utf8'))
    : judge(folder, words),
);
