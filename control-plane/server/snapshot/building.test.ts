import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { TooBusy } from '../../../shared/thread/job-thread.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { createRulesFolder } from '../../../test/support/rules-folder.ts';
import type { CheckedRules } from '../../authoring/checked-rules.ts';
import { createWorkThread } from '../work-thread.ts';
import { buildSnapshots } from './build.ts';
import { Building, type BuildingDeps, isLarge, KnownBuilds } from './building.ts';
import { UnfinishedExamination } from './last-good.ts';

const encode = loadProtos().rateLimitConfig.serialize;
const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024, advises: true };

function createBuilding(t: ExecutionContext, more: Partial<BuildingDeps> = {}) {
  const building = new Building({ options, encode, clock: systemClock, ...more });
  t.teardown(() => building.close());
  return building;
}

const rule = (index: number) => `  - key: user
    value: v${index}
    value_to_metric: ${index % 2 === 0}
    rate_limit: {unit: hour, requests_per_unit: ${index}}
    descriptors: [{key: path, detailed_metric: true}]
`;
/** By default more text than is sent at once. */
const toDomain = (domain: string, rules = 500) =>
  `domain: ${domain}\ndescriptors:\n${Array.from({ length: rules }, (_, at) => rule(at)).join('')}`;
const groups = `groups:
  - {name: canary, match: {id: c-*, metadata: {stage: [a, b]}}, domains: [shop], rollout: "5%:60s,100%"}
  - {name: rest, domains: [shop, mail]}
`;
const toFiles = (texts: Readonly<Record<string, string>>) => ({
  files: Object.entries(texts).map(([path, text]) => ({ path, text })),
  problems: [],
});
const large = toFiles({
  'mail.yaml': toDomain('mail', 3),
  'node-groups.yaml': groups,
  'policy.yaml': 'policies: [{domains: [shop], owners: [ada]}]\n',
  'shop.yaml': toDomain('shop'),
});

test('a large revision is the same from the thread as when it is built here', async (t) => {
  t.true(isLarge(large));
  const { outcome, documents } = await createBuilding(t).build(large);
  const here = buildSnapshots(large, options, { encode });
  if (!outcome.ok || !here.ok) return t.fail('good files were not built');
  const { ruleSet, ...rest } = outcome.built;
  const { ruleSet: wanted, ...others } = here.built;
  t.deepEqual(rest, others);
  const listed = ({ domains }: CheckedRules) =>
    [...domains].map(([name, rules]) => [name, ...rules.limitNames()]);
  t.deepEqual(listed(ruleSet), listed(wanted));
  t.is(ruleSet.limitCount, wanted.limitCount);
  t.deepEqual([outcome.warnings, outcome.advice], [here.warnings, here.advice]);
  t.deepEqual(documents, here.built.documents);
  const [canary, other] = rest.groups;
  t.is(canary?.standard.resources.get('shop'), other?.standard.resources.get('shop'));
  t.is(canary?.extended, canary?.lasting, 'no rule ends');
  return undefined;
});

test('a few lines that may be many rules by their aliases are large', (t) => {
  t.true(isLarge(toFiles({ 'a.yaml': 'domain: d', 'd.yaml': '- &a [1]' })));
  t.false(isLarge(toFiles({ 'a.yaml': 'domain: d', 'd.yaml': '- [1]'.padEnd(2_000) })));
});

test('unchanged files keep their document and their snapshot', async (t) => {
  const building = createBuilding(t);
  const first = await building.build(large);
  const changed = large.files.map((file) =>
    file.path === 'mail.yaml' ? { ...file, text: toDomain('mail', 2) } : file,
  );
  const second = await building.build({ files: changed, problems: [] });
  const ofShop = ({ documents }: typeof first) => documents.find(({ domain }) => domain === 'shop');
  t.truthy(ofShop(first));
  t.is(ofShop(second), ofShop(first));
  t.not(second.documents[0], first.documents[0]);
  const snapshotsOf = ({ outcome }: typeof first) =>
    outcome.ok ? outcome.built.groups.map(({ standard }) => standard) : [];
  const [of, ...others] = snapshotsOf(first);
  t.is(snapshotsOf(second)[0], of, 'of the group that does not get the file');
  t.not(snapshotsOf(second)[1], others[0]);
  const small = toFiles({ 'a.yaml': toDomain('a', 1) });
  const [once, again] = [await building.build(small), await building.build(small)];
  t.is(snapshotsOf(again)[0], snapshotsOf(once)[0]);
});

test('equal files are built once, whoever asks, until one of their rules ends', async (t) => {
  const clock = createManualClock();
  const known = new KnownBuilds(options);
  let jobs = 0;
  function createCounted() {
    const thread = createWorkThread({ clock: systemClock });
    const run: typeof thread.run = (job) => {
      jobs++;
      return thread.run(job);
    };
    return createBuilding(t, { known, clock, thread: { run, close: () => thread.close() } });
  }
  const [store, asking] = [createCounted(), createCounted()];
  const until = new Date(clock.wallMs() + 60_000).toISOString();
  const ending = `  - {key: a, until: ${until}, rate_limit: {unit: hour, requests_per_unit: 1}}\n`;
  const toRevision = () => toFiles({ 'shop.yaml': `${toDomain('shop')}${ending}` });
  const before = await store.build(toRevision());
  t.deepEqual(await asking.build(toRevision()), before);
  t.is(jobs, 1);
  clock.advance(60_000);
  const after = await asking.build(toRevision());
  t.is(jobs, 2);
  t.deepEqual(await store.build(toRevision()), after, 'of two the one without what has ended');
  t.is(jobs, 2);
  const countLimits = ({ outcome }: typeof after) => outcome.ok && outcome.built.ruleSet.limitCount;
  t.is(countLimits(before), 501);
  t.is(countLimits(after), 500);
  await asking.build(toFiles({ 'shop.yaml': toDomain('shop') }));
  t.is(jobs, 3);
});

test('a snapshot that is no longer used is built again', async (t) => {
  const building = createBuilding(t);
  await building.build(large);
  setFlagsFromString('--expose-gc');
  await new Promise(setImmediate);
  runInNewContext('gc')();
  t.true((await building.build(large)).outcome.ok);
});

test('an examination of other files leaves the domains of the store as they are built', async (t) => {
  const known = new KnownBuilds(options);
  const store = createBuilding(t, { known });
  const asking = createBuilding(t, { known });
  const files = Array.from({ length: 10 }, (_, at) => ({
    path: `d${at}.yaml`,
    text: toDomain(`d${at}`, 40),
  }));
  const rulesOf = ({ outcome }: Awaited<ReturnType<typeof store.build>>) =>
    outcome.ok ? [...outcome.built.ruleSet.domains.values()] : [];
  const before = await store.build({ files, problems: [] });
  const changed = { path: 'd0.yaml', text: toDomain('d0', 50) };
  const asked = await asking.build({ files: [changed, ...files.slice(1, 5)], problems: [] });
  t.is(rulesOf(asked).filter((rules) => rulesOf(before).includes(rules)).length, 4);
  const next = [...files.slice(0, 9), { path: 'd9.yaml', text: toDomain('d9', 50) }];
  const after = await store.build({ files: next, problems: [] });
  const reused = rulesOf(after).filter((rules) => rulesOf(before).includes(rules));
  t.is(reused.length, 9, 'all but the one that the store has changed');
});

test('of files with errors all that can be read is given, with a bounded number of problems', async (t) => {
  const wrong = Object.fromEntries(
    Array.from({ length: 100 }, (_, at) => [
      `f${at}.yaml`,
      `domain: d${at}\ndescriptors:\n${'  - kee: 1\n'.repeat(100)}`,
    ]),
  );
  const building = createBuilding(t);
  const given = toFiles({ 'a.yaml': toDomain('a'), ...wrong });
  const { outcome, documents } = await building.build(given);
  t.deepEqual(pluck(documents, 'domain'), ['a']);
  const problems = outcome.ok ? [] : outcome.problems;
  t.true(problems.filter(isError).length <= 1_001, `${problems.length}`);
  const { ok, problems: same } = await building.findProblems(given);
  t.deepEqual([ok, same.length], [false, problems.length]);
});

const endless = 'require("worker_threads").parentPort.on("message", () => { for (;;); })';
const greedy =
  'require("worker_threads").parentPort.on("message", () => { const all = []; for (;;) all.push([...all]); })';

// Proof of SECURITY.md: cannot block or fill the control plane: a revision is read in a thread, in bounded time and
// memory
test('a revision that takes too long, or too much memory, is refused with its largest file, and the next revision is built', async (t) => {
  const clock = createManualClock();
  const programs = [endless, greedy, greedy];
  const resourceLimits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 };
  const entry = new URL('../work-thread-main.ts', import.meta.url);
  const started = Promise.withResolvers<void>();
  const thread = createWorkThread({
    clock,
    startWorker() {
      started.resolve();
      const program = programs.shift();
      return program === undefined
        ? new Worker(entry)
        : new Worker(program, { eval: true, resourceLimits });
    },
  });
  const building = createBuilding(t, { clock, thread });
  const slow = building.build(large);
  await started.promise;
  clock.advance(900_000);
  for (const [built, message] of [
    [slow, 'the configuration takes more than 60 s to read'],
    [building.build(large), 'the configuration needs more memory than there is'],
  ] as const) {
    const { outcome } = await built;
    const [problem] = outcome.ok ? [] : outcome.problems;
    t.deepEqual(
      [problem?.rule, problem?.file, problem?.message],
      ['too-large', 'shop.yaml', message],
    );
  }
  t.false((await building.findProblems(large)).ok);
  t.true((await building.build(large)).outcome.ok);
});

test('more than a control plane examines is refused before it is', async (t) => {
  let starts = 0;
  const thread = createWorkThread({
    clock: systemClock,
    startWorker() {
      starts++;
      throw new Error('no thread is wanted');
    },
  });
  const building = createBuilding(t, { thread });
  const text = `#${' '.repeat(1024 * 1024)}`;
  const most = Array.from({ length: 16 }, (_, at) => ({ path: `${at}.yaml`, text }));
  const message = `${16 * text.length} characters in all, more than the ${16 * 1024 * 1024} that a control plane examines`;
  const { outcome } = await building.build({ files: most, problems: [] });
  const { ok, problems } = await building.findProblems({ files: most, problems: [] });
  t.false(ok || outcome.ok);
  for (const found of [outcome.ok ? [] : outcome.problems, problems]) {
    t.deepEqual(
      found.map((each) => each.message),
      [message],
    );
  }
  t.is(starts, 0);
});

/** A text of 3.5 million characters, of which all but 500,000 come from aliases. */
function toAliased(domain: string): string {
  const names = Array.from({ length: 6 }, (_, at) => `m${at}: *text`);
  const metadata = `{first: &text ${'x'.repeat(500_000)}, ${names.join(', ')}}`;
  return `domain: ${domain}\ndescriptors:\n  - key: a\n    rate_limit: {unit: hour, requests_per_unit: 1}\n    metadata: ${metadata}\n`;
}

test('more than a control plane serves is refused at the file with which it is too much', async (t) => {
  const files = Array.from({ length: 6 }, (_, at) => ({
    path: `d${at}.yaml`,
    text: toAliased(`d${at}`),
  }));
  const { outcome, documents } = await createBuilding(t).build({ files, problems: [] });
  const errors = outcome.ok ? [] : outcome.problems.filter(isError);
  t.deepEqual(
    errors.map(({ file, message }) => [file, message]),
    [
      [
        'd4.yaml',
        'with this file there are more than 16777216 characters of rules, the most that a control plane serves',
      ],
    ],
  );
  t.is(documents.length, 5);
});

test('beyond the characters that may wait a revision is not taken', async (t) => {
  const building = createBuilding(t, {
    thread: createWorkThread({ clock: systemClock, mostWaiting: 100_000 }),
  });
  const first = building.findProblems(large);
  await t.throwsAsync(async () => building.build(toFiles({ 'b.yaml': toDomain('b', 1_000) })), {
    instanceOf: TooBusy,
  });
  t.true((await first).ok);
});

test('a revision at whose examination the process was killed waits for a person, and only that one', async (t) => {
  const { path } = createRulesFolder(t);
  const built = { outcome: { ok: false, problems: [] }, documents: [] } as const;
  writeFileSync(join(path, 'examined.revision'), 'a\n');
  const unfinished = new UnfinishedExamination(path);
  await unfinished.read();
  const refused = await unfinished.during('a', () => t.fail('it was done twice') as never);
  const [problem] = refused.outcome.ok ? [] : refused.outcome.problems;
  t.regex(problem?.message ?? '', /its examination did not end last time/);
  t.regex(problem?.hint ?? '', /remove .*examined\.revision and start it again/);
  t.is(await unfinished.during('b', () => built), built);
  t.is(await unfinished.during('a', () => built), built, 'the last one examined is another one');
  await unfinished.settled();
  const next = new UnfinishedExamination(path);
  await next.read();
  t.is(await next.during('a', () => built), built);
});
