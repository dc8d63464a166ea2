// What a rollout believes, and what it never does: a control plane as people run it, with twenty workers that are
// streams of the test's own. Each scenario is one that ended badly once.
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import {
  connectStreamWorker,
  type Figures,
  type StreamWorker,
  type StreamWorkerOptions,
} from '../support/stream-worker.ts';

/** Rules named `bad` limit nearly everything. */
const figuresOf = (rules: string): Figures => (rules.includes('bad') ? { overLimit: 90 } : {});

async function start(
  t: ExecutionContext,
  plan: string,
  options: {
    readonly count?: number;
    readonly idOf?: (index: number) => string;
    readonly worker?: (index: number) => Partial<StreamWorkerOptions>;
  } = {},
) {
  const { count = 20, idOf = (index: number) => `w-${index}`, worker = () => ({}) } = options;
  const rules = createRulesFolder(t);
  rules.write('a.yaml', ruleText('first', 1));
  const controlPlane = await createControlPlaneProcess(t, {
    flags: ['--config-dir', rules.path, '--rollout', plan],
  });
  await controlPlane.start();
  const address = controlPlane.xdsAddress;
  const workers: StreamWorker[] = [];
  const join = (more: Partial<StreamWorkerOptions> & { readonly id: string }) => {
    const joined = connectStreamWorker(t, { address, figuresOf, ...more });
    workers.push(joined);
    return joined;
  };
  for (let index = 0; index < count; index++) join({ id: idOf(index), ...worker(index) });
  const having = (text: string) => workers.filter((each) => each.has(text));
  await eventually('all have the first', () => having('first').length === count);
  const everTold = (text: string) =>
    workers.filter(({ told }) => told.some((each) => each.includes(text))).length;
  const rollout = async () => (await controlPlane.fetch('/rollouts')).body.rollout;
  const push = (name: string) => rules.write('a.yaml', ruleText(name, 1));
  return { controlPlane, rules, workers, having, everTold, rollout, push, join };
}

test('going back to what is in force takes the revision from the workers on trial within ten seconds', async (t) => {
  const { push, having, everTold, controlPlane } = await start(t, 'canary=10%,hold=1h');
  push('second');
  await eventually('two have it', () => having('second').length === 2);
  const sinceMs = performance.now();
  push('first');
  await eventually('nobody has it', () => having('first').length === 20, 30_000);
  const seconds = (performance.now() - sinceMs) / 1000;
  t.log(`${seconds.toFixed(1)} s from the file to the last worker`);
  t.true(seconds < 10);
  t.is(everTold('second'), 2);
  const { stdout, exitCode } = await controlPlane.run('status', '--wait', '--timeout', '30s');
  t.is(exitCode, 0, stdout);
});

test('an older state reaches everybody at once, whatever is on trial', async (t) => {
  const { push, having, everTold, controlPlane } = await start(t, 'canary=10%,hold=1h');
  push('second');
  await eventually('two have it', () => having('second').length === 2);
  await controlPlane.run('rollout', 'promote', '--reason', 'seen');
  await eventually('all have the second', () => having('second').length === 20);
  push('third');
  await eventually('two have the third', () => having('third').length === 2);
  const { body } = await controlPlane.fetch('/revisions');
  const first = body.revisions.at(-1).id;
  const sinceMs = performance.now();
  const back = await controlPlane.run('rollback', first, '--wait', '--timeout', '30s');
  t.is(back.exitCode, 0, back.stdout + back.stderr);
  await eventually('all have the first', () => having('first').length === 20);
  t.log(
    `${((performance.now() - sinceMs) / 1000).toFixed(1)} s from the command to the last worker`,
  );
  t.is(everTold('third'), 2);
});

test('when one of two workers with an id leaves, a bad revision is still bad', async (t) => {
  const { push, having, everTold, workers, rollout } = await start(t, 'canary=10%,hold=20s', {
    idOf: (index) => `w-${index >> 1}`,
  });
  push('bad');
  await eventually('two have it', () => having('bad').length > 0);
  const [one] = having('bad');
  const twin = workers.find(({ id, instance }) => id === one?.id && instance !== one?.instance);
  twin?.leave();
  await eventually(
    'it is taken back',
    // The twin may have left with it.
    async () => (await rollout()) === null && having('bad').every((each) => each === twin),
    40_000,
  );
  t.true(everTold('bad') <= 2, `${everTold('bad')} were told`);
});

test('when one of two workers with an id leaves, a good revision is still good', async (t) => {
  const { controlPlane, push, having, workers } = await start(t, 'canary=10%,hold=8s', {
    idOf: (index) => `w-${index >> 1}`,
    // Each has failed often, long ago.
    worker: () => ({ figuresOf: (rules) => (rules.includes('second') ? {} : { errors: 5 }) }),
  });
  await eventually('all have reported', async () => {
    const { body } = await controlPlane.fetch('/workers');
    return body.workers.every(({ figures }: { figures: unknown }) => figures !== null);
  });
  push('second');
  await eventually('some have it', () => having('second').length > 0);
  const [one] = having('second');
  const twin = workers.find(({ id, instance }) => id === one?.id && instance !== one?.instance);
  twin?.leave();
  await eventually('all have it', () => having('second').length >= 19, 60_000);
  t.pass();
});

test('workers that all have the default id are divided like all others', async (t) => {
  const { push, having, everTold, rollout } = await start(t, 'canary=10%,hold=1h', {
    idOf: () => 'default',
  });
  push('bad');
  await eventually(
    'it is taken back',
    async () => {
      return everTold('bad') > 0 && having('bad').length === 0 && (await rollout()) === null;
    },
    40_000,
  );
  t.is(everTold('bad'), 2);
});

test('workers of another make that share an id cannot be divided: the revision waits and says so', async (t) => {
  const { push, everTold, controlPlane, having } = await start(t, 'canary=10%,hold=1h', {
    count: 3,
    idOf: () => 'default',
    worker: () => ({ instance: undefined, hasLink: false }),
  });
  push('second');
  const waited = await controlPlane.run('status', '--wait', '--timeout', '30s');
  t.is(waited.exitCode, 4, waited.stdout);
  t.regex(waited.stdout, /no effect, no share of the workers can be made: 3 share 1 node id/);
  t.is(everTold('second'), 0);
  const revision = (await rolloutRevision(controlPlane)) ?? '';
  const approved = await controlPlane.run('approve', revision, '--reason', 'it is small');
  t.is(approved.exitCode, 0, approved.stderr);
  await eventually('all have it', () => having('second').length === 3);
});

async function rolloutRevision(controlPlane: {
  fetch(path: string): Promise<{ body: { rollout: { revision: string } | null } }>;
}) {
  return (await controlPlane.fetch('/rollouts')).body.rollout?.revision;
}

test('one worker of the share that never answers does not keep a bad revision where it is', async (t) => {
  let isFirst = true;
  const { push, having, everTold, rollout } = await start(t, 'canary=20%,hold=1h', {
    worker: () => ({
      answer(rules) {
        if (!rules.includes('bad') || !isFirst) return 'take';
        isFirst = false;
        return 'ignore';
      },
    }),
  });
  push('bad');
  await eventually('three have it, one is silent', () => having('bad').length === 3);
  const sinceMs = performance.now();
  await eventually(
    'it is taken back',
    async () => (await rollout()) === null && having('bad').length === 0,
    30_000,
  );
  t.log(`${((performance.now() - sinceMs) / 1000).toFixed(1)} s`);
  t.is(everTold('bad'), 4);
});

for (const [what, name, figures] of [
  ['make a bad revision good', 'bad', {}],
  ['make a good revision bad', 'second', { errors: 100 }],
] as const) {
  test(`a link without a stream, under the id of a canary, does not ${what}`, async (t) => {
    const { push, having, everTold, join, rollout, controlPlane, workers } = await start(
      t,
      'canary=10%,hold=12s',
    );
    push(name);
    await eventually('two have it', () => everTold(name) === 2);
    const [canary] = workers.filter(({ told }) => told.some((each) => each.includes(name)));
    const honest = workers.length;
    for (let index = 0; index < 5; index++) {
      join({ id: canary?.id ?? '', hasStream: false, figuresOf: () => figures });
    }
    if (name === 'bad') {
      await eventually(
        'it is taken back',
        async () => (await rollout()) === null && having('bad').length === 0,
        40_000,
      );
      t.is(everTold('bad'), 2);
      return;
    }
    await eventually('all have it', () => having('second').length === honest, 60_000);
    const { body } = await controlPlane.fetch('/workers');
    t.is(body.links.length, 5, 'they are shown, and marked');
  });
}

test('nobody chooses an id that comes first', async (t) => {
  const { workers, push, having, controlPlane } = await start(t, 'canary=10%,hold=1h');
  const chosen: string[][] = [];
  for (const name of ['second', 'third', 'fourth']) {
    push(name);
    await eventually(`two have the ${name}`, () => having(name).length === 2);
    chosen.push(
      having(name)
        .map(({ id }) => id)
        .sort(),
    );
    await controlPlane.run('rollout', 'abort', '--reason', 'next');
    await eventually('nobody has it', () => having(name).length === 0);
  }
  t.true(new Set(chosen.map((each) => each.join())).size > 1, chosen.join(' '));
  t.is(workers.length, 20);
});

test('a stranger that refuses under the id of a canary blames only itself', async (t) => {
  const { push, having, everTold, join } = await start(t, 'canary=25%,hold=15s');
  push('second');
  await eventually('five have it', () => having('second').length === 5);
  const [canary] = having('second');
  for (let index = 0; index < 3; index++)
    join({
      id: canary?.id ?? '',
      answer: (rules) => (rules.includes('second') ? 'refuse' : 'take'),
    });
  await eventually('all honest ones have it', () => having('second').length >= 20, 60_000);
  t.true(everTold('second') >= 20);
});

test('a second worker with an instance that is connected is refused by name, and the first one stays', async (t) => {
  const { workers, join, controlPlane } = await start(t, 'canary=10%,hold=1h', { count: 2 });
  const [first] = workers;
  const copy = join({ id: 'copy', instance: first?.instance });
  await eventually('both of its streams are refused', () => copy.ended.length === 2);
  t.regex(copy.ended.join(), /instance '\S+' of worker 'w-0' is connected already/);
  const { body } = await controlPlane.fetch('/workers');
  t.deepEqual(body.workers.map(({ id }: { id: string }) => id).sort(), ['w-0', 'w-1']);
});

test('workers with the revision that vanish without a goodbye have it taken back', async (t) => {
  const { push, having, everTold, rollout, controlPlane } = await start(t, 'canary=20%,hold=1h');
  push('second');
  await eventually('four have it', () => having('second').length === 4);
  const having4 = having('second');
  for (const worker of having4.slice(0, 3)) worker.vanish();
  await eventually('it is taken back', async () => (await rollout()) === null, 20_000);
  t.is(everTold('second'), 4);
  t.regex(controlPlane.output(), /taken back: \d of 4 workers with it (is|are) gone/);
});

test('workers that leave with a goodbye are no evidence', async (t) => {
  const { push, having, rollout } = await start(t, 'canary=20%,hold=5s');
  push('second');
  await eventually('four have it', () => having('second').length === 4);
  for (const worker of having('second').slice(0, 3)) worker.leave();
  await eventually('all others have it', () => having('second').length >= 17 + 3, 60_000);
  t.is(await rollout(), null);
});

test('SIGTERM hands over: the next process goes on at the step, and nothing is paused', async (t) => {
  const { push, having, controlPlane, rollout, workers } = await start(t, 'canary=10%,hold=1h');
  push('second');
  await eventually('two have it', () => having('second').length === 2);
  const ids = having('second').map(({ id }) => id);
  t.is(await controlPlane.end('SIGTERM'), 0);
  await controlPlane.start();
  const after = workers.map(({ id, instance }) =>
    connectStreamWorker(t, { address: controlPlane.xdsAddress, id, instance }),
  );
  await eventually('all are served', () => after.every(({ told }) => told.length > 0));
  t.deepEqual(
    after.filter((each) => each.has('second')).map(({ id }) => id),
    ids,
  );
  await eventually(
    'it is watched again',
    async () => /^is watched/.test((await rollout())?.text ?? ''),
    45_000,
  );
});
