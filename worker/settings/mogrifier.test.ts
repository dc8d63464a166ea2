import test from 'ava';
import { readMogrifiers } from './mogrifier.ts';

for (const prefix of [
  'TAGGED_MOGRIFIER',
  'TAGGED_MOGRIFIERS',
  'DOG_STATSD_MOGRIFIER',
  'DOG_STATSD_MOGRIFIERS',
]) {
  test(`a rewriting rule is read from names that begin with ${prefix}`, (t) => {
    const reading = readMogrifiers(['calls'], 'TAGGED_MOGRIFIERS', {
      [`${prefix}_CALLS_PATTERN`]: '^calls\\.(.*)$',
      [`${prefix}_CALLS_NAME`]: 'calls',
      [`${prefix}_CALLS_TAGS`]: 'type:$1,of:calls',
    });
    t.deepEqual(reading.problems, []);
    const [{ pattern, ...rest } = { pattern: undefined }, ...others] = reading.mogrifiers;
    t.deepEqual(rest, { name: 'calls', metricName: 'calls', tags: { type: '$1', of: 'calls' } });
    t.deepEqual([pattern?.exec('calls.a')?.[1], others], ['a', []]);
    t.true(reading.names.includes(`${prefix}_CALLS_TAGS`));
  });
}

test('rules keep the order of the list, and one listed twice occurs once', (t) => {
  const environment = Object.fromEntries(
    ['A', 'B'].flatMap((name) => [
      [`TAGGED_MOGRIFIER_${name}_PATTERN`, name],
      [`TAGGED_MOGRIFIER_${name}_NAME`, name],
    ]),
  );
  const { mogrifiers } = readMogrifiers(['B', 'A', 'B'], 'TAGGED_MOGRIFIERS', environment);
  t.deepEqual(
    mogrifiers.map(({ name, tags }) => [name, tags]),
    [
      ['B', {}],
      ['A', {}],
    ],
  );
});

test('named groups and flags in the syntax of RE2 are accepted', (t) => {
  const { mogrifiers } = readMogrifiers(['A'], 'TAGGED_MOGRIFIERS', {
    TAGGED_MOGRIFIER_A_PATTERN: '(?i)^(?P<domain>shop)',
    TAGGED_MOGRIFIER_A_NAME: 'x',
  });
  t.is(mogrifiers[0]?.pattern.exec('SHOP.x')?.groups?.['domain'], 'SHOP');
});

test('all problems of rules are reported', (t) => {
  const { problems, mogrifiers } = readMogrifiers(['LOST', '', 'BAD', 'TWO'], 'USE_X', {
    TAGGED_MOGRIFIER_BAD_PATTERN: '(',
    TAGGED_MOGRIFIER_BAD_NAME: '',
    TAGGED_MOGRIFIER_BAD_TAGS: 'a:',
    TAGGED_MOGRIFIER_TWO_PATTERN: 'a',
    DOG_STATSD_MOGRIFIER_TWO_PATTERN: 'b',
    TAGGED_MOGRIFIER_TWO_NAME: 'x',
    TAGGED_MOGRIFIER_TWO_TAGS: 'x',
  });
  t.deepEqual(mogrifiers, []);
  t.deepEqual(problems, [
    'TAGGED_MOGRIFIER_LOST_PATTERN/DOG_STATSD_MOGRIFIER_LOST_PATTERN is not set: USE_X lists "LOST"',
    'TAGGED_MOGRIFIER_LOST_NAME/DOG_STATSD_MOGRIFIER_LOST_NAME is not set: USE_X lists "LOST"',
    'USE_X: a name in the list is empty',
    'TAGGED_MOGRIFIER_BAD_NAME/DOG_STATSD_MOGRIFIER_BAD_NAME is not set: USE_X lists "BAD"',
    'TAGGED_MOGRIFIER_BAD_PATTERN="(": not a regular expression (missing closing ): `(`)',
    'TAGGED_MOGRIFIER_BAD_TAGS="a:": a key or a value is empty; write comma-separated key:value items such as domain:$1,key:$2',
    'TAGGED_MOGRIFIER_TWO_PATTERN="a" and DOG_STATSD_MOGRIFIER_TWO_PATTERN="b" are two names of one setting with different values; remove one of them',
    'TAGGED_MOGRIFIER_TWO_TAGS="x": item 1 does not have exactly one ":"; write comma-separated key:value items such as domain:$1,key:$2',
  ]);
});
