// Runs every routing case, on every mount that can express it.
import test from 'ava';
import { pluck } from '../../support/pluck.ts';
import { readCaseFile } from './case-file.ts';
import { mountNames, reasonToSkip } from './mounts.ts';
import { runCase } from './run-case.ts';

const file = await readCaseFile();

/** Decided by WHATWG requests and HTTP parsers; all other cases run on all mounts. */
const notExpressed: Readonly<Record<string, readonly string[]>> = {
  core: [],
  node: ['verbs-15', 'verbs-16'],
  fastify: ['verbs-15', 'verbs-16'],
  fetch: ['verbs-16'],
};

for (const mount of mountNames) {
  test(`the cases that ${mount} cannot express are exactly the ones that are named`, (t) => {
    const skipped = file.cases.filter((one) => reasonToSkip(mount, one) !== undefined);
    t.deepEqual(pluck(skipped, 'id'), notExpressed[mount]);
  });

  for (const one of file.cases) {
    if (reasonToSkip(mount, one) !== undefined) continue;
    test(`${mount}: ${one.id} ${one.title}`, async (t) => {
      t.deepEqual(await runCase(file, one, mount), []);
    });
  }
}

test('a case with any single wrong expectation is reported', async (t) => {
  const [one] = file.cases.filter(({ id }) => id === 'results-10');
  if (one === undefined) return t.fail('the case is gone');
  const wrong = {
    status: 201,
    handler: ':Other.GET',
    bound: { a: 1 },
    media_type: 'text/plain',
    json: {},
    text: 'x',
    base64: 'x',
    empty: true,
    headers: { 'x-a': 'b' },
    allow: ['GET'],
    body_includes: ['zz'],
    body_excludes: ['\u0001'],
  };
  const found = await runCase(file, { ...one, expect: wrong }, 'core');
  return t.is(found.length, Object.keys(wrong).length);
});
