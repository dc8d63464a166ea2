import test from 'ava';
import fc from 'fast-check';
import { slotCount, toSlot } from './key-slot.ts';

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

test('only what is between the first braces counts, unless that is nothing', (t) => {
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
