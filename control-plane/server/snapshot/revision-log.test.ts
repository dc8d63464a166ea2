import test from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import { buildSnapshots } from './build.ts';
import { describeInForce, describeRestored, type LogLine } from './revision-log.ts';

const outcome = buildSnapshots(
  { files: [{ path: 'a.yaml', text: ruleText('shop', 1) }], problems: [] },
  { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 },
  { encode: loadProtos().rateLimitConfig.serialize },
);
if (!outcome.ok) throw new Error('the rules of this test are wrong');
const { built } = outcome;

const toText = ({ level, text }: LogLine) => `${level} ${text}`;

const id = '0123456789abcdef0123456789abcdef01234567';

for (const [what, author, message, title] of [
  ['neither author nor message', undefined, undefined, '0123456789ab'],
  ['an author', 'Ann', undefined, '0123456789ab (Ann)'],
  ['a message', undefined, 'a typo\n\nmore', '0123456789ab ("a typo")'],
  ['both', 'Ann', 'a typo', '0123456789ab ("a typo", Ann)'],
  ['a long message', undefined, 'x'.repeat(80), `0123456789ab ("${'x'.repeat(72)}")`],
] as const) {
  test(`a revision with ${what} is named ${title.slice(0, 30)}`, (t) => {
    const line = describeInForce({ id, atMs: 0, author, message }, built, true, true);
    t.is(toText(line), `notice Revision ${title} is in force: 1 domain, 1 limit`);
  });
}

test('a routine load is logged at info, and so is one that changes nothing', (t) => {
  const revision = { id, atMs: 0, author: undefined, message: undefined };
  t.is(
    toText(describeInForce(revision, built, false, false)),
    'info Revision 0123456789ab is in force: 1 domain, 1 limit; nothing changes for the workers',
  );
});

test('an earlier revision is logged with its age, unless clocks differ', (t) => {
  const restored = (ageMs: number) =>
    toText(
      describeRestored(
        { id, atMs: 10_000_000, author: undefined, message: undefined },
        built,
        'It is away',
        10_000_000 + ageMs,
      ),
    );
  const logged = (age: string) =>
    `warning It is away: the last good revision 0123456789ab, ${age} old, is in force: 1 domain, 1 limit`;
  t.is(restored(3_600_400), logged('1h'));
  t.is(restored(90_000), logged('1m30s'));
  t.is(restored(-5_000), logged('0s'));
});
