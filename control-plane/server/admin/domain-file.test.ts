import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import {
  findDomainFiles,
  findUnreadFile,
  freePath,
  listDomainFiles,
  namesTag,
  toFileName,
  toTag,
} from './domain-file.ts';

const parse = (files: readonly { path: string; text: string }[]) =>
  files.flatMap(({ path, text }) => parseRuleDocument(text, path).document ?? []);
const pathsOf = (files: readonly { path: string }[]) => files.map(({ path }) => path);

const files = [
  { path: 'a/one.yaml', text: ruleText('shop', 1) },
  { path: 'b/broken.yaml', text: 'domain: [' },
  { path: 'mail.yaml', text: 'domain: [' },
  { path: 'two.yaml', text: ruleText('shop', 2).replace('key: k', 'key: j') },
];
const documents = parse(files);

test('the files of a domain are those that name it', (t) => {
  t.deepEqual(pathsOf(findDomainFiles({ files }, documents, [], 'shop')), [
    'a/one.yaml',
    'two.yaml',
  ]);
  t.deepEqual(pathsOf(findDomainFiles({ files }, documents, [], 'other')), []);
});

test('a broken file counts for its previous domain, or for the domain in its file name', (t) => {
  const inForce = parse([{ path: 'b/broken.yaml', text: ruleText('jobs', 1) }]);
  t.deepEqual(pathsOf(findDomainFiles({ files }, documents, inForce, 'jobs')), ['b/broken.yaml']);
  t.deepEqual(pathsOf(findDomainFiles({ files }, documents, inForce, 'mail')), ['mail.yaml']);
  t.deepEqual([...listDomainFiles({ files }, documents, inForce).keys()], ['jobs', 'shop']);
});

test('an unreadable file counts for its previous domain, or for the domain in its file name', (t) => {
  const inForce = parse([
    { path: 'b/jobs-of-night.yaml', text: ruleText('jobs', 1) },
    { path: 'queue.yaml', text: ruleText('mail', 1) },
  ]);
  const problems = ['b/jobs-of-night.yaml', 'queue.yaml', 'shop.yaml'].map((path) =>
    problemOf('error', 'other', path, 'no text'),
  );
  const find = (domain: string) => findUnreadFile({ files, problems }, inForce, domain)?.path;
  t.is(find('jobs'), 'b/jobs-of-night.yaml');
  t.is(find('shop'), 'shop.yaml');
  t.is(find('mail'), 'queue.yaml');
  t.is(find('queue'), undefined);
  t.is(find('other'), undefined);
  t.is(findUnreadFile({ files, problems: [] }, inForce, 'shop'), undefined);
  const full = [problemOf('error', 'other', '.', 'more than 10 files; nothing is read')];
  t.is(findUnreadFile({ files: [], problems: full }, [], 'other')?.path, '.');
});

test('a new file gets a path that no other file has, even an unreadable one', (t) => {
  const problems = [problemOf('error', 'other', 'Two-2.yaml', 'no text')];
  t.is(freePath({ files, problems }, 'two.yaml'), 'two-3.yaml');
  t.is(freePath({ files, problems: [] }, 'two.yaml'), 'two-2.yaml');
  t.is(freePath({ files, problems }, 'new.yaml'), 'new.yaml');
});

test('the name of a new file is safe, and differs for each domain', (t) => {
  t.is(toFileName('shop'), 'shop.yaml');
  const odd = [
    'Shop',
    'a/b',
    'a\\b',
    '..',
    '../../etc/passwd',
    '',
    '.hidden',
    'node-groups',
    'ä',
    'x'.repeat(500),
  ];
  const names = odd.map(toFileName);
  for (const name of names) t.regex(name, /^[A-Za-z0-9][\w-]{0,80}\.yaml$/);
  t.is(
    new Set([...names.map((name) => name.toLowerCase()), 'node-groups.yaml']).size,
    odd.length + 1,
  );
});

test('different contents have different tags', async (t) => {
  const tag = await toTag(files);
  t.regex(tag, /^"[0-9a-f]{32}"$/);
  t.not(await toTag(files.slice(1)), tag);
  t.true(namesTag(tag, tag));
  t.true(namesTag(`"other" , ${tag}`, tag));
  t.true(namesTag(' * ', tag));
  t.false(namesTag(`W/${tag}`, tag));
  t.false(namesTag('', tag));
});
