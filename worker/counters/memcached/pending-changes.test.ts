import test from 'ava';
import { pluck } from '../../../test/support/pluck.ts';
import { createPendingChanges } from './pending-changes.ts';

test('additions to a key are merged until they are written', (t) => {
  const pending = createPendingChanges(10);
  pending.push('add', 'k', 2, 60);
  pending.push('add', 'k', 3, 60);
  const [first, ...others] = pending.removeWritable();
  t.is(first?.amount, 5);
  t.deepEqual(others, []);
  if (first !== undefined) first.isWritten = true;
  pending.push('add', 'k', 4, 60);
  t.is(first?.amount, 5);
  t.is(pending.size, 2);
  t.is(pending.project('k', 10), 19);
});

test('the changes of a key are written one after the other', (t) => {
  const pending = createPendingChanges(10);
  pending.push('add', 'k', 5, 60);
  pending.push('refund', 'k', 9, 60);
  pending.push('add', 'k', 1, 60);
  const amounts: (number | bigint)[] = [];
  for (let [change] = pending.removeWritable(); change; [change] = pending.removeWritable()) {
    amounts.push(change.amount);
    t.deepEqual(pending.removeWritable(), []);
    pending.finish(change);
  }
  t.deepEqual(amounts, [5, 9, 1]);
  t.is(pending.size, 0);
});

test('a refund in between keeps additions apart, and the order counts', (t) => {
  const pending = createPendingChanges(10);
  pending.push('add', 'k', 5, 60);
  pending.push('refund', 'k', 9, 60);
  pending.push('add', 'k', 1, 60);
  t.is(pending.project('k', undefined), 1);
  t.is(pending.project('k', 10), 7);
});

test('huge additions are not merged', (t) => {
  const pending = createPendingChanges(10);
  pending.push('add', 'k', 1, 60);
  pending.push('add', 'k', 2 ** 32, 60);
  pending.push('add', 'k', 2n ** 60n, 60);
  t.is(pending.size, 3);
  t.is(pending.project('k', undefined), 2n ** 60n + 2n ** 32n + 1n);
});

test('beyond the bound only changes that can be merged are accepted', (t) => {
  const pending = createPendingChanges(1);
  t.true(pending.push('add', 'k', 1, 60));
  t.true(pending.push('add', 'k', 1, 60));
  t.false(pending.push('refund', 'k', 1, 60));
  t.false(pending.push('add', 'other', 1, 60));
  t.is(pending.project('k', undefined), 2);
});

test('a dropped change is forgotten; a written one stays', (t) => {
  const pending = createPendingChanges(10);
  pending.push('add', 'written', 1, 60);
  const [written] = pending.removeWritable();
  if (written !== undefined) written.isWritten = true;
  pending.push('add', 'written', 2, 60);
  pending.push('add', 'other', 3, 60);
  t.deepEqual(pluck(pending.dropUnwritten(), 'amount'), [2, 3]);
  t.is(pending.size, 1);
  t.is(pending.project('written', undefined), 1);
  t.is(pending.project('other', undefined), undefined);
});
