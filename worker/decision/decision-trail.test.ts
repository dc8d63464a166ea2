// Tests the debug lines of decisions when there are none or too many; their content is in decisions.test.ts.
import test from 'ava';
import type { Log } from '../../shared/log.ts';
import { ask, createWorker } from '../../test/support/decision-worker.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createDecisionTrail } from './decision-trail.ts';

test('a log without debug lines has no trail, so that no texts are made', (t) => {
  const log: Log = { ...createRecordedLog(), isDebug: false };
  t.is(createDecisionTrail(log), undefined);
});

test('a request of any size makes a line of bounded size', async (t) => {
  const { decide, log } = createWorker('domain: d', { isTrailed: true });
  const lineOf = async (...descriptors: string[]) => {
    await decide(ask(...descriptors));
    return log.lines.splice(0)[0] ?? '';
  };
  const line = await lineOf(...Array.from({ length: 5_000 }, (_, index) => `x=${index}`));
  t.true(line.length < 40_000);
  t.regex(line, /\.\.\. \(\d+ more\)$/);
  t.true((await lineOf(`x=${'v'.repeat(1_000_000)}`)).length < 40_000);
});
