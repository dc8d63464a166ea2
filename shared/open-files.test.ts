import test from 'ava';
import { createManualClock } from '../test/support/manual-clock.ts';
import { createRecordedLog } from '../test/support/recorded-log.ts';
import { watchOpenFiles } from './open-files.ts';

test('reaching the limit of open files is logged once and counted at each check, and so is its end', async (t) => {
  const clock = createManualClock(0);
  const log = createRecordedLog();
  const refusals = ['', 'EMFILE', 'EMFILE', 'ENOENT', 'ENFILE', ''];
  let counted = 0;
  const watch = watchOpenFiles({
    clock,
    log,
    onExhausted: () => counted++,
    async tryToOpen() {
      const code = refusals.shift();
      if (code) throw Object.assign(new Error(code), { code });
    },
  });
  while (refusals.length > 0) {
    clock.advance(1_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  watch.close();
  t.is(counted, 3);
  const full =
    /^warning no more files and connections can be opened \(limit: \w+\): new connections are closed unanswered; raise the limit of open files \(ulimit -n, LimitNOFILE\)$/;
  const [first = '', over, again = '', end] = log.lines;
  t.regex(first, full);
  t.regex(again, full);
  const ended = 'notice files and connections can be opened again';
  t.deepEqual([over, end, log.lines.length], [ended, ended, 4]);
});
