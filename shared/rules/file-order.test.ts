import test from 'ava';
import { groupByDomain } from './file-order.ts';
import type { RuleDocument } from './rule-document.ts';

/** `onRead` is called whenever its file's name is read. */
function documentOf(domain: string, file: string, onRead = () => {}): RuleDocument {
  const document = { domain, descriptors: [] };
  return Object.defineProperty(document, 'file', {
    get() {
      onRead();
      return file;
    },
  }) as unknown as RuleDocument;
}

test('the files of each domain are in the order in which they take effect', (t) => {
  const documents = [
    documentOf('shop', 'b.yaml'),
    documentOf('news', 'z.yaml'),
    documentOf('shop', 'a/b.yaml'),
    documentOf('shop', 'a.yaml'),
  ];
  const given = [...documents];
  const grouped = [...groupByDomain(documents)].map(([domain, group]) => [
    domain,
    group.map(({ file }) => file),
  ]);
  t.deepEqual(grouped, [
    ['shop', ['a/b.yaml', 'a.yaml', 'b.yaml']],
    ['news', ['z.yaml']],
  ]);
  t.deepEqual(documents, given, 'the given list stays as it is');
});

test('files of different domains are not compared, however many there are', (t) => {
  let reads = 0;
  const documents = Array.from({ length: 1_000 }, (_, index) =>
    documentOf(`domain-${index}`, `${index}.yaml`, () => reads++),
  );
  t.is(groupByDomain(documents).size, 1_000);
  t.is(reads, 0);
});
