import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import { toDomainResource } from './build.ts';

const encode = loadProtos().rateLimitConfig.serialize;
const ours = (fields: string) =>
  ruleText('shop', 1).replace('key: k', `key: k\n    value: a*\n    ${fields}`);

function documentOf(text: string, path: string): RuleDocument {
  const { document } = parseRuleDocument(text, path);
  if (document === undefined) throw new Error('the rules of this test are wrong');
  return document;
}

test('a resource follows from the documents and their order', (t) => {
  const [one, two, three] = [1, 2, 3].map((count) =>
    documentOf(ruleText('shop', count), `${count}.yaml`),
  );
  if (!one || !two || !three) throw new Error('there are three');
  const made = (...documents: RuleDocument[]) =>
    toDomainResource('shop', documents, encode).extended.version;
  t.is(made(one, two), made(one, two));
  const others = [made(), made(one), made(one, two), made(one, three), made(two, one)];
  t.is(new Set([...others, made(one, two, three)]).size, 6);
});

test('exactly the documents with extensions are reported', (t) => {
  const documents = [
    documentOf(ours('share_threshold: true'), 'a.yaml'),
    documentOf(ruleText('shop', 2), 'b.yaml'),
  ];
  const { leftOut, notes } = toDomainResource('shop', documents, encode);
  t.deepEqual(leftOut, ['descriptors[0].share_threshold']);
  t.deepEqual(
    notes.map(({ file, message }) => [file, message]),
    [
      [
        'a.yaml',
        "share_threshold of domain 'shop' (one place) cannot be sent to workers that are not Ratelane's; they get the rules without",
      ],
    ],
  );
  t.deepEqual(toDomainResource('shop', documents.slice(1), encode).notes, []);
});
