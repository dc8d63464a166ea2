import { readFile } from 'node:fs/promises';
import test from 'ava';
import { plainShape } from '../../shared/rules/limit-shape.ts';
import { admit, drawWindowEdge } from './window-edge-picture.ts';

test('the picture in the guide matches the decisions of the counters', async (t) => {
  const picture = new URL('../../shared/rules/window-edge.svg', import.meta.url);
  t.is(await readFile(picture, 'utf8'), await drawWindowEdge());
});

test('at the edge a fixed window admits twice its limit, a sliding window and a bucket do not', async (t) => {
  const sum = async (shape: Partial<typeof plainShape> | object) => {
    const all = { ...plainShape, unit: 'minute', requestsPerUnit: 60, ...shape } as const;
    return (await admit(all)).reduce((total, count) => total + count, 0);
  };
  t.is(await sum({}), 120);
  // 60 in the first ten seconds, then one for each second as the weight of the previous window decreases.
  t.is(await sum({ algorithm: 'sliding_window' }), 79);
  t.is(await sum({ algorithm: 'token_bucket', burst: 20 }), 20 + 29);
});
