import test from 'ava';
import { toCounterKey } from './counter-key.ts';

test('domain, keys and values are joined by underscores, and the window start ends the key', (t) => {
  const entries = [
    { key: 'k1', value: 'x' },
    { key: 'k2', value: 'y' },
  ];
  t.is(toCounterKey('', 'd1', entries, undefined, 1795221180), 'd1_k1_x_k2_y_1795221180');
});

test('an empty value leaves two underscores', (t) => {
  t.is(
    toCounterKey('', 'd1', [{ key: 'quota', value: '' }], undefined, 1795219200),
    'd1_quota__1795219200',
  );
});

test('a prefix goes in front of the domain', (t) => {
  t.is(
    toCounterKey('pfx:', 'd1', [{ key: 'k1', value: 'M' }], undefined, 1795221720),
    'pfx:d1_k1_M_1795221720',
  );
});

test('a shared value is replaced by its pattern, the others stay', (t) => {
  const entries = [
    { key: 'c', value: 'mno' },
    { key: 'd', value: 'D' },
  ];
  t.is(toCounterKey('', 'w', entries, ['m*', undefined], 1795219200), 'w_c_m*_d_D_1795219200');
});
