import test from 'ava';
import { changesFiles, readCaseFiles, readCaseGroups } from './case-file.ts';
import { notYet } from './not-yet.ts';
import { actions, questions, reads } from './observations.ts';

test('each gap names an existing topic or case, and is named once', (t) => {
  const names = new Set(
    readCaseFiles().flatMap(({ topic, cases }) => [topic, ...cases.map((one) => one.id)]),
  );
  for (const gap of notYet) t.true(names.has(gap.name), gap.name);
  t.is(new Set(notYet.map((gap) => gap.name)).size, notYet.length);
});

test('all cases are run except the gaps and the cases decided otherwise', (t) => {
  const all = readCaseFiles().flatMap(({ topic, cases }) =>
    cases.map((one) => ({ topic, id: one.id, class: one.class })),
  );
  const expected = all.filter(
    (one) =>
      one.class !== 'differs' &&
      !notYet.some((gap) => gap.name === one.topic || gap.name === one.id),
  );
  const run = readCaseGroups().flat();
  t.deepEqual(run.map((one) => one.id).sort(), expected.map((one) => one.id).sort());
  t.true(run.length > 200, String(run.length));
});

test('cases of a group have the same settings, and those that change files are last', (t) => {
  for (const group of readCaseGroups()) {
    const settings = group.map((one) => JSON.stringify(Object.entries(one.env ?? {}).sort()));
    t.is(new Set(settings).size, 1);
    const firstChange = group.findIndex(changesFiles);
    t.true(firstChange < 0 || group.slice(firstChange).every(changesFiles));
    const isAlone = group.some((one) => one.alone === true || one.own_redis || one.start);
    t.true(!isAlone || group.length === 1);
  }
});

test('every step of the cases that are run is of exactly one known kind', (t) => {
  const kinds = [actions, questions, reads].flatMap(Object.keys);
  for (const one of readCaseGroups().flat()) {
    for (const step of one.steps) {
      t.is(kinds.filter((kind) => kind in step).length, 1, `${one.id}: ${JSON.stringify(step)}`);
    }
  }
});
