import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { Building } from '../snapshot/building.ts';
import type { Revision } from '../store/revision.ts';
import { createExamine } from './examination.ts';
import { findLastChange, type LastChangeSources } from './last-change.ts';

const examine = createExamine(
  new Building({
    encode: loadProtos().rateLimitConfig.serialize,
    options: { mergeDomains: false, maxResponseBytes: 100_000 },
    clock: systemClock,
  }),
);
const rule = (limit: number) =>
  `  - key: customer\n    rate_limit: { unit: hour, requests_per_unit: ${limit} }\n`;
const other = (limit: number) => rule(limit).replace('customer', 'tenant');
const row = { entries: [{ key: 'customer', value: '' }], file: 'd.yaml' };

/** The texts of a domain, the newest first; ids are numbers, the oldest 1. */
function look(texts: readonly string[], more: Partial<LastChangeSources> = {}) {
  const revisions = texts.map(
    (text, index): Revision => ({
      id: `${texts.length - index}`,
      atMs: index,
      author: `author ${texts.length - index}`,
      message: undefined,
      files: [{ path: 'd.yaml', text: `domain: d\ndescriptors:\n${text}` }],
      problems: [],
    }),
  );
  const read: string[] = [];
  const found = findLastChange('d', row, {
    served: revisions,
    async readRevision(id) {
      read.push(id);
      return revisions.find((each) => each.id === id);
    },
    examine,
    hasTime: () => true,
    ...more,
  });
  return { found, read };
}

test('the newest revision that changes the rule is found, with what it changed and how many came since', async (t) => {
  const texts = [rule(2) + other(9), rule(2) + other(8), rule(2), rule(1), rule(1)];
  const { change, later } = await look(texts).found;
  t.is(change?.revision.id, '3');
  t.is(change?.revision.author, 'author 3');
  t.is(change?.before.id, '2');
  t.deepEqual(change?.texts, ['1 per hour -> 2 per hour']);
  t.is(later, 2);
});

test('a revision that touches the file and not the rule, or has errors, has not changed it', async (t) => {
  const { change } = await look([rule(2), `# a comment\n${rule(2)}`, rule(1)]).found;
  t.is(change?.revision.id, '2');
  const broken = await look([rule(2), rule(2).replace('hour', 'huor'), rule(1)]).found;
  t.is(broken.change, undefined);
});

test('a rule that came with its domain was changed by the revision that brought it', async (t) => {
  const { change } = await look([rule(2), other(1)]).found;
  t.is(change?.revision.id, '2');
  t.is(change?.texts.length, 1);
});

test('where nothing older is known, nothing has changed it', async (t) => {
  t.deepEqual(await look([rule(2), rule(2)]).found, { change: undefined, later: 1 });
  t.deepEqual(await look([rule(2)]).found, { change: undefined, later: 0 });
  t.deepEqual(await look([]).found, { change: undefined, later: 0 });
  const forgotten = look([rule(2), rule(1)], { readRevision: async () => undefined });
  t.deepEqual(await forgotten.found, { change: undefined, later: 0 });
});

test('looking ends when there is no more time', async (t) => {
  let looks = 0;
  const { found, read } = look([rule(2), rule(2), rule(2), rule(1)], {
    hasTime: () => ++looks < 3,
  });
  t.deepEqual(await found, { change: undefined, later: 2 });
  t.deepEqual(read, ['4', '3', '2']);
});
