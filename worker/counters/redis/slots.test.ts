import test from 'ava';
import fc from 'fast-check';
import { parseSlotMap, slotCount, toSlot } from './slots.ts';

const known: [string, number][] = [
  ['123456789', 12739],
  ['foo', 12182],
  ['', 0],
  ['{user1000}.following', 3443],
  ['{user1000}.followers', 3443],
  ['user1000', 3443],
];
for (const [key, slot] of known) {
  test(`the key "${key}" is in slot ${slot}`, (t) => {
    t.is(toSlot(key), slot);
  });
}

test('only the part between the first braces counts, unless it is empty', (t) => {
  t.is(toSlot('foo{bar}{zap}'), toSlot('bar'));
  t.is(toSlot('foo{{bar}}zap'), toSlot('{bar'));
  t.not(toSlot('foo{}{bar}'), toSlot('bar'));
  t.not(toSlot('{bar'), toSlot('bar'));
});

test('every key has a slot, and a key in braces has the same', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (name, rest) => {
      const slot = toSlot(name);
      t.true(Number.isInteger(slot) && slot >= 0 && slot < slotCount);
      if (name !== '' && !/[{}]/.test(name)) t.is(toSlot(`{${name}}${rest}`), slot);
    }),
  );
});

const tcp = (host: string, port: number) => ({ kind: 'tcp', host, port }) as const;

test('each slot has its master, and slots without a master have none', (t) => {
  const map = parseSlotMap(
    [
      ['0', '99', ['10.0.0.1', '7000', 'id'], ['10.0.0.2', '7001', 'id']],
      ['200', '200', ['', '7002', 'id']],
      ['300', '301', ['10.0.0.1', '7000', 'id']],
      ['400', '400', ['?', '7003', 'id']],
      ['500', '500', [null, '7004', 'id', ['hostname', 'none']]],
    ],
    'asked',
  );
  t.deepEqual(map?.owners[400], tcp('asked', 7003));
  t.deepEqual(map?.owners[500], tcp('asked', 7004));
  t.is(map?.owners.length, slotCount);
  t.deepEqual(map?.owners[99], tcp('10.0.0.1', 7000));
  t.is(map?.owners[100], undefined);
  t.deepEqual(map?.owners[200], tcp('asked', 7002));
  t.is(map?.owners[301], map?.owners[0]);
  const unnamed = [7002, 7003, 7004].map((port) => tcp('asked', port));
  t.deepEqual(map?.masters, [tcp('10.0.0.1', 7000), ...unnamed]);
  t.deepEqual(map?.nodes, [tcp('10.0.0.1', 7000), tcp('10.0.0.2', 7001), ...unnamed]);
});

const wrong: unknown[] = [
  null,
  'OK',
  [['0', '99']],
  [['0', '99', ['h', '0']]],
  [['0', '99', ['h', '65536']]],
  [['0', '99', ['h', '1.5']]],
  [['0', '99', [5, '1']]],
  [['0', '99', 'h:1']],
  [['0', '99', ['h', '1'], ['h', '0']]],
  [['-1', '99', ['h', '1']]],
  ['0 to 99'],
  [['5', '4', ['h', '1']]],
  [['0', String(slotCount), ['h', '1']]],
  [['x', '1', ['h', '1']]],
];
for (const reply of wrong) {
  test(`${JSON.stringify(reply)} is no map of slots`, (t) => {
    t.is(parseSlotMap(reply, 'h'), undefined);
  });
}

test('a map can contain the first and the last slot and the highest port', (t) => {
  const map = parseSlotMap([['0', String(slotCount - 1), ['h', '65535']]], 'asked');
  t.deepEqual(map?.owners[0], tcp('h', 65_535));
  t.deepEqual(map?.owners[slotCount - 1], tcp('h', 65_535));
});

test('a node without slots has an empty map', (t) => {
  t.deepEqual(parseSlotMap([], 'h')?.masters, []);
});
