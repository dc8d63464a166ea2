import test from 'ava';
import { overrideMetricKey, sanitizeMetricName } from './metric-key.ts';

const entries = [
  { key: 'a.b', value: 'c.d' },
  { key: 'e', value: '' },
];

test('a limit in the request is counted under its entries', (t) => {
  t.is(overrideMetricKey('my.domain', entries, false), 'my.domain.a.b_c.d.e');
});

test('sanitised dots leave the domain as it is', (t) => {
  t.is(overrideMetricKey('my.domain', entries, true), 'my.domain.a_b_c_d.e');
});

test('a descriptor without entries has the domain and a dot', (t) => {
  t.is(overrideMetricKey('my.domain', [], true), 'my.domain.');
});

test('characters that act in lines or on terminals are removed from names', (t) => {
  t.is(sanitizeMetricName('a:b|c\x1bd\u202ee\u2066f\u2028g\u200dh'), 'a_b_c_d_e_f_g\u200dh');
});
