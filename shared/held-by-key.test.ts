import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { HeldByKey } from './held-by-key.ts';

test('several maps hold values for one object, even a frozen one, which has no visible new property', (t) => {
  const [one, other] = [new HeldByKey<object, string>(), new HeldByKey<object, string>()];
  const key = Object.freeze(['a']);
  t.is(one.get(key), undefined);
  one.set(key, 'first');
  other.set(key, 'second');
  one.set(key, 'third');
  t.deepEqual([one.get(key), other.get(key), one.get(['a'])], ['third', 'second', undefined]);
  t.deepEqual([Reflect.ownKeys(key), structuredClone(key)], [['0', 'length'], ['a']]);
});

test('a value is collected with its key', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const values = new HeldByKey<object, object>();
  const value = (() => {
    const made = { large: true };
    values.set({}, made);
    return new WeakRef(made);
  })();
  await new Promise(setImmediate);
  collect();
  t.is(value.deref(), undefined);
});
