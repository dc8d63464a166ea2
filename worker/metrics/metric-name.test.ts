import test from 'ava';
import fc from 'fast-check';
import { sanitizeMetricName } from '../../shared/rules/lookup/metric-key.ts';
import { countReservedTags, toTagSuffix } from './metric-name.ts';

test('colons and pipes become underscores, other dots stay', (t) => {
  t.is(sanitizeMetricName('a.b:c|d.e'), 'a.b_c_d.e');
});

test('the dots of an IPv4 address become underscores', (t) => {
  t.is(sanitizeMetricName('d.ip_10.0.0.1.total_hits'), 'd.ip_10_0_0_1.total_hits');
  t.is(sanitizeMetricName('d.10.0.0'), 'd.10.0.0');
  t.is(sanitizeMetricName('192.168.1.1 and 10.0.0.1'), '192_168_1_1 and 10_0_0_1');
});

// Proof of migrating.md: Control characters in metric names become `_`
test('no text can end a line or a name on the wire', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      t.notRegex(sanitizeMetricName(name), /[:|\p{Cc}]/u);
    }),
  );
});

test('tags are written in the order of their keys, without empty ones', (t) => {
  t.is(toTagSuffix({}), '');
  t.is(toTagSuffix({ zone: 'b', env: 'test' }), '.__env=test.__zone=b');
  t.is(toTagSuffix({ env: '', '': 'x', reg: 'a.b:c|d' }), '.__reg=a_b_c_d');
  t.is(toTagSuffix({ env: 'x\ny:1|c' }), '.__env=x_y_1_c');
});

test('reserved keys are counted', (t) => {
  t.is(countReservedTags({ host: 'x', env: 'y', az: 'z' }), 2);
});
