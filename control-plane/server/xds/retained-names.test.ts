// Tests which streams are closed when all streams together keep too much.
import test from 'ava';
import { RetainedNames } from './limits.ts';

test('beyond the total, the streams that keep the most are closed until it is met', (t) => {
  const names = new RetainedNames(100);
  const gone: string[] = [];
  const open = (name: string) => {
    const holder = { closeAsLargest: () => void gone.push(name) };
    return (bytes: number) => names.retain(holder, bytes);
  };
  const [modest, greedy, greedier] = [open('modest'), open('greedy'), open('greedier')];
  modest(10);
  greedy(40);
  greedier(50);
  t.deepEqual(gone, []);
  modest(11);
  t.deepEqual(gone, ['greedier']);
  greedier(0);
  modest(10);
  open('next')(91);
  t.deepEqual(gone, ['greedier', 'next']);
  open('two')(35);
  open('three')(35);
  t.deepEqual(gone, ['greedier', 'next', 'greedy']);
});
