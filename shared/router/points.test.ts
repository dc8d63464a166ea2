// Each point of the router is shown by tests that exist.
import { readFile } from 'node:fs/promises';
import test from 'ava';

test('each of the fourteen points is shown by tests that exist', async (t) => {
  const page = await readFile(new URL('docs/points.md', import.meta.url), 'utf8');
  const rows = page.matchAll(/^\|(?: (\d+)\. [^|]+|) \| `?([^|]+?)`? \| `([^`]+)` \|$/gm);
  const points: string[] = [];
  for (const [, point, title = '', path = ''] of rows) {
    if (point !== undefined) points.push(point);
    const source = await readFile(new URL(path, import.meta.url), 'utf8');
    const isThere = ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`));
    t.true(isThere, `${path} has no test "${title}"`);
  }
  t.deepEqual(
    points,
    Array.from({ length: 14 }, (_, at) => String(at + 1)),
  );
});
