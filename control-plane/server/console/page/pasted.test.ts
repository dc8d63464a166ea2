import test from 'ava';
import { parsePasted } from './pasted.ts';

const ada = { key: 'customer', value: 'ada' };
const path = { key: 'path', value: '/a=b' };

test('a descriptor is parsed in the notations of users, logs and requests', (t) => {
  for (const text of [
    'customer=ada, path=/a=b',
    'customer=ada\npath=/a=b',
    '(customer=ada)(path=/a=b)',
  ]) {
    t.deepEqual(parsePasted(text), { domain: undefined, entries: [ada, path] }, text);
  }
  t.deepEqual(parsePasted('shop: customer=ada'), { domain: 'shop', entries: [ada] });
  t.deepEqual(
    parsePasted('{"domain":"shop","descriptors":[{"entries":[{"key":"customer","value":"ada"}]}]}'),
    { domain: 'shop', entries: [ada] },
  );
  t.deepEqual(parsePasted('{"entries":[{"key":"customer"}]}')?.entries, [
    { key: 'customer', value: '' },
  ]);
});

test('a pasted text that is not a descriptor is searched by name', (t) => {
  for (const text of [
    'ada',
    '',
    'shop.customer',
    'a=b, c',
    '=x',
    '{',
    '{"entries":[{}]}',
    '{"entries":{}}',
    '{"entries":[null]}',
  ]) {
    t.is(parsePasted(text), undefined, text);
  }
});
