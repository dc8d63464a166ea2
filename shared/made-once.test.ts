import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { runAtOnce } from './in-slices.ts';
import { HeldByKey, MadeOnce } from './made-once.ts';

function* making(log: string[], name: string, steps = 3): Generator<void, object> {
  for (let step = 1; step <= steps; step++) {
    log.push(`${name} ${step}`);
    yield;
  }
  return { name };
}

test('callers that ask at the same time make the value together, once', (t) => {
  const [once, key, log] = [new MadeOnce<object, object>(), {}, [] as string[]];
  const [one, other] = [0, 1].map(() => once.of(key, () => making(log, 'a')));
  for (const each of [one, other, one]) each?.next();
  const made = runAtOnce(other as Generator<void, object>);
  t.deepEqual(log, ['a 1', 'a 2', 'a 3']);
  t.is(runAtOnce(one as Generator<void, object>), made);
  t.is(runAtOnce(once.of(key, () => making(log, 'b'))), made);
  t.not(runAtOnce(once.of({}, () => making(log, 'c'))), made);
});

test('another version replaces the one before, which earlier callers still receive', (t) => {
  const [once, key, log] = [new MadeOnce<object, object>(), {}, [] as string[]];
  const old = once.of(key, () => making(log, 'old'), 1);
  old.next();
  t.deepEqual(runAtOnce(once.of(key, () => making(log, 'new'), 2)), { name: 'new' });
  t.deepEqual(runAtOnce(old), { name: 'old' });
  t.deepEqual(runAtOnce(once.of(key, () => making(log, 'again'), 2)), { name: 'new' });
});

test('a caller that disconnects lets the others finish, and a failure is not retained', (t) => {
  const [once, key, log] = [new MadeOnce<object, object>(), {}, [] as string[]];
  const [gone, stays] = [0, 1].map(() => once.of(key, () => making(log, 'a')));
  gone?.next();
  stays?.next();
  gone?.return({});
  t.deepEqual(runAtOnce(stays as Generator<void, object>), { name: 'a' });
  function* failing(): Generator<void, object> {
    yield;
    throw new Error('no rules');
  }
  const other = {};
  const both = [0, 1].map(() => once.of(other, failing));
  for (const each of both) each.next();
  for (const each of both) t.throws(() => runAtOnce(each), { message: 'no rules' });
  t.deepEqual(runAtOnce(once.of(other, () => making(log, 'b'))), { name: 'b' });
});

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
