// Every relative link in every document is valid: both the file and the heading exist.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import test from 'ava';
import { listFiles } from '../support/listed-files.ts';

const root = join(import.meta.dirname, '..', '..');
const documents = listFiles('*.md');

/** Without fenced blocks and inline code, whose brackets are not links. */
function withoutCode(markdown: string): string {
  return markdown.replace(/^```.*?^```/gms, '').replace(/`[^`\n]*`/g, '`code`');
}

/** As GitHub derives them from headings. */
function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const text = markdown.replace(/^```.*?^```/gms, '');
  for (const [, heading = ''] of text.matchAll(/^#{1,6} +(.*)$/gm)) {
    const plain = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .trim();
    const base = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
    let anchor = base;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${base}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

function linksOf(markdown: string): string[] {
  const inline = [...withoutCode(markdown).matchAll(/\]\(([^()\s]+)\)/g)];
  return inline.map(([, target = '']) => target).filter((target) => !/^[a-z]+:/.test(target));
}

test('there are documents to check', (t) => {
  t.true(documents.includes('README.md'));
  t.true(documents.includes('worker/docs/operating.md'));
});

for (const document of documents) {
  test(`every relative link of ${document} is valid`, (t) => {
    const markdown = readFileSync(join(root, document), 'utf8');
    for (const link of linksOf(markdown)) {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? join(root, document) : resolve(root, dirname(document), path);
      if (!existsSync(target)) {
        t.fail(`${link}: there is no ${path}`);
      } else if (anchor !== undefined && statSync(target).isFile()) {
        t.true(anchorsOf(readFileSync(target, 'utf8')).has(anchor), `${link}: no such heading`);
      }
    }
    t.pass();
  });
}
