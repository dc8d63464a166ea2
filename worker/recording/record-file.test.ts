// Tests the file of recorded decisions when it cannot be written, or ends within a line.
import { appendFile, mkdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../test/support/eventually.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../../test/support/temporary-folder.ts';
import { createRegistry } from '../metrics/registry.ts';
import { maxBufferedBytes } from './record-buffer.ts';
import { createRecordFile, retryMs } from './record-file.ts';

async function setUp(t: ExecutionContext) {
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'decisions');
  const clock = createManualClock();
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 10, log });
  const options = { path, maxBytes: 2 * maxBufferedBytes, files: 2 };
  const file = createRecordFile({ options, header: () => 'header\n', metrics, log, clock });
  t.teardown(() => file.stop(1_000));
  const count = (name: string) => metrics.snapshot().get(`ratelimit.recording.${name}`) ?? 0;
  /** Advances the clock until `condition` holds. */
  const turned = (what: string, condition: () => boolean) =>
    eventually(what, () => {
      clock.advance(retryMs);
      return condition();
    });
  return { path, turned, log, file, count, read: () => readFile(path, 'utf8').catch(() => '') };
}

test('a path that cannot be written is logged once, and missing decisions are reported when it can be written', async (t) => {
  const { path, turned, log, file, count, read } = await setUp(t);
  await mkdir(path);
  file.add('one\n', 1_000);
  await turned('the first is lost', () => count('dropped') === 1);
  file.add('two\n', 2_000);
  await turned('the second is lost, too', () => count('dropped') === 2);
  t.deepEqual(
    log.lines.map((line) => line.replaceAll(path, 'PATH')),
    [
      "warning Decisions are not recorded in PATH: EISDIR: illegal operation on a directory, open 'PATH'; trying again every 5s, decisions are not affected",
    ],
  );
  await rmdir(path);
  file.add('three\n', 3_000);
  await turned('the third is written', () => count('written') === 1);
  t.is(await read(), 'header\nthree\n{"dropped":2,"from":1000,"time":2000}\n');
  t.is(log.lines.at(-1), `notice Decisions are recorded in ${path} again`);
});

test('a truncated line does not damage those that are appended', async (t) => {
  const { path, file, read } = await setUp(t);
  await appendFile(path, 'header\none\ntw');
  file.add('three\n', 3_000);
  await file.stop(1_000);
  t.is(await read(), 'header\none\ntw\nheader\nthree\n');
});

test('decisions beyond the buffer are dropped, and reported after the written ones', async (t) => {
  const { file, count, read } = await setUp(t);
  const long = `${'x'.repeat(maxBufferedBytes / 4 - 1)}\n`;
  for (let index = 1; index <= 6; index++) file.add(long, index);
  await file.stop(5_000);
  const lines = (await read()).split('\n');
  t.is(count('written') + count('dropped'), 6);
  t.true(count('dropped') > 0);
  t.like(JSON.parse(lines.at(-2) ?? ''), { dropped: count('dropped'), time: 6 });
});
