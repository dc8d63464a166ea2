import test from 'ava';
import { parseRuleDocument } from '../document/document.ts';
import { isLargeText } from '../thread/parsing-thread.ts';
import { mayHaveAnchor } from './anchor.ts';

test('a short text that is many rules by its aliases is large', (t) => {
  const list = (length: number, toItem: (at: number) => string) =>
    Array.from({ length }, (_, at) => toItem(at)).join('');
  const rules = `&rules [${list(60, (at) => `{key: k${at}}, `)}]`;
  const copies = list(100, (at) => `  - {key: a${at}, descriptors: *rules}\n`);
  const text = `domain: d\ndescriptors:\n  - {key: a, descriptors: ${rules}}\n${copies}`;
  const { document } = parseRuleDocument(text, 'd.yaml');
  const sum = document?.descriptors.reduce(
    (count, { descriptors }) => count + descriptors.length,
    0,
  );
  t.deepEqual([text.length < 5_000, sum], [true, 6_060]);
  t.true(isLargeText(text));
  t.false(isLargeText(text.replace('&', '').replaceAll('*', '')));
});

test('wherever YAML takes an anchor one is found, and an ampersand in a value is none', (t) => {
  for (const text of ['&a x', '- &a [1]', '[&a 1]', '[1,&a 2]', 'k: !!str &a x', '{"k":&a 1}']) {
    t.true(mayHaveAnchor(text), text);
  }
  for (const text of ['value: Q&A', 'value: a & b', '']) t.false(mayHaveAnchor(text), text);
});
