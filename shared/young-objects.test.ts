import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { runInSlices } from './in-slices.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as NonNullable<typeof globalThis.gc>;

function youngBytes(): number {
  const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
  return young?.space_used_size ?? 0;
}

/** Makes objects, all of which stay, and notes how many bytes of new ones there were at most. */
function* keepMany(noted: { most: number }): Generator<void, object[]> {
  const kept: object[] = [];
  for (let at = 0; at < 300_000; at++) {
    kept.push({ at, text: `text ${at}` });
    if (at % 100 !== 0) continue;
    noted.most = Math.max(noted.most, youngBytes());
    yield;
  }
  return kept;
}

test.serial('work in slices leaves few new objects to be collected at once', async (t) => {
  globalThis.gc = gc;
  t.teardown(() => {
    Reflect.deleteProperty(globalThis, 'gc');
  });
  gc();
  const noted = { most: 0 };
  t.is((await runInSlices(keepMany(noted))).length, 300_000);
  t.true(noted.most > 0 && noted.most < 8_000_000, `${noted.most} bytes`);
});

test.serial('without --expose-gc work in slices is done all the same', async (t) => {
  t.is(globalThis.gc, undefined);
  t.is((await runInSlices(keepMany({ most: 0 }))).length, 300_000);
});
