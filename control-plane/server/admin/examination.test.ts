import { Worker } from 'node:worker_threads';
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { ownPath } from '../../../shared/own-files.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { defaultMaxResponseBytes } from '../snapshot/build.ts';
import { Building } from '../snapshot/building.ts';
import { comparingForNodes } from '../snapshot/node-change.ts';
import { WrittenJson } from '../store/json-in-slices.ts';
import { createWorkThread } from '../work-thread.ts';
import { findChanges, listChanges } from './diff-job.ts';
import { createExamine } from './examination.ts';
import { toRuleChangeJson } from './rule-change-json.ts';

const examine = createExamine(
  new Building({
    encode: loadProtos().rateLimitConfig.serialize,
    options: { mergeDomains: false, maxResponseBytes: defaultMaxResponseBytes, advises: true },
    clock: systemClock,
  }),
);

const limit = 'rate_limit: {unit: hour, requests_per_unit: 1}';
const text = `domain: shop
descriptors:
  - {key: user, value: a*, share_threshold: true, ${limit}}
  - {key: path, detailed_metric: true, ${limit}}
`;

test('fields that other workers do not receive are named once, in addition to advice on the rules', async (t) => {
  const { problems, ruleSet } = await examine({
    files: [{ path: 'shop.yaml', text }],
    problems: [],
  });
  t.truthy(ruleSet);
  t.deepEqual(
    problems.map(({ severity, message }) => [severity, message.split(' ', 3).join(' ')]),
    [
      ['note', 'share_threshold of domain'],
      ['note', 'detailed_metric makes a'],
    ],
  );
});

test('comments in files allow the problems that they name, and one without effect is noted', async (t) => {
  const commented = `# ratelane: allow unbounded-metric, worker-only-field, no-limit\n${text}`;
  const { problems } = await examine({
    files: [{ path: 'shop.yaml', text: commented }],
    problems: [],
  });
  t.deepEqual(
    problems.map(({ severity, message }) => [severity, message]),
    [['note', "this comment allows 'no-limit', which does not occur here"]],
  );
});

test('the thread finds the same changes of many rules, in the memory that one domain takes', async (t) => {
  const make = async (name: string, amount: number, groups: string) => {
    const rule = (at: number) =>
      `  - {key: user, value: c${at}, rate_limit: {unit: hour, requests_per_unit: ${amount}}}\n`;
    const rules = Array.from({ length: 1_500 }, (_, at) => rule(at)).join('');
    const until = new Date(systemClock.wallMs() + amount * 86_400_000).toISOString();
    const ends = `  - {key: user, until: ${until}, ${limit}}\n`;
    const domains = ['a', 'b', 'c', 'd', 'e', name];
    const files = domains.map((domain) => ({
      path: `${domain}.yaml`,
      text: `domain: ${domain}\ndescriptors:\n${rules}${domain === 'a' ? ends : ''}`,
    }));
    const { governed, problems } = await examine({
      files: [...files, { path: 'node-groups.yaml', text: groups }, { path: 'x.yaml', text }],
      problems: [],
    });
    if (governed === undefined) throw new Error(problems[0]?.message);
    return governed;
  };
  const groupsOf = (domain: string) =>
    `groups: [{name: g, match: {id: [n]}, domains: [${domain}]}, {name: rest, domains: ['*']}]\n`;
  const before = await make('old', 1, groupsOf('b'));
  const after = await make('new', 2, groupsOf('c'));
  const entry = ownPath('control-plane/server/work-thread-main.ts');
  // It would need twice as much if the lookups of all domains stayed until the end.
  const resourceLimits = { maxOldGenerationSizeMb: 28, maxYoungGenerationSizeMb: 2 };
  const startWorker = () => new Worker(entry, { resourceLimits });
  const thread = createWorkThread({ clock: systemClock, startWorker });
  const { signal } = new AbortController();
  const asked = { nowMs: systemClock.wallMs(), signal };
  const written = await findChanges(thread, { before, after }, asked);
  await thread.close();
  if (!(written instanceof WrittenJson)) return t.fail('it was found here');
  const found = JSON.parse(Buffer.concat(written.parts).toString());
  t.deepEqual(found, runAtOnce(comparingForNodes(before, after, toRuleChangeJson)));
  t.deepEqual([...listChanges(written)], found);
});
