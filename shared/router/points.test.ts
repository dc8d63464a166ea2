// Each point of the router is covered by existing tests.
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { testLines } from '../../test/support/reviewed-lines.ts';

testLines(test, new URL('points.txt', import.meta.url), async (given) => {
  const missing: string[] = [];
  for (const shown of given.split(' + ')) {
    const [path = '', title = ''] = shown.split(/: (.*)/);
    const source = await readFile(new URL(path, import.meta.url), 'utf8');
    const isThere = [`'${title}'`, `"${title}"`, `\`${title}\``, `\n${title} | `];
    if (!isThere.some((text) => source.includes(text))) missing.push(shown);
  }
  return missing.length === 0 ? 'shown' : `not there: ${missing.join(' + ')}`;
});
