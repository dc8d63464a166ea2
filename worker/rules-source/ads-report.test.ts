// Tests the statistics of the exchange with a management server; its lines in the log are tested with the source.
import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createStubMetrics } from '../../test/support/stub-metrics.ts';
import { AdsReport } from './ads-report.ts';

test('each event of the exchange is in its own statistic', (t) => {
  const metrics = createStubMetrics();
  const url = 'cp:50051';
  const report = new AdsReport({
    ...{ urls: [url], usesTls: false, nodeId: 'w1', metrics },
    ...{ log: createRecordedLog(), clock: createManualClock() },
  });
  const end = { reason: 'it ended', nextAttemptMs: 0, nextUrl: url, hasRules: false };
  const events: readonly (readonly [name: string, happen: () => void, after: number])[] = [
    ['connected', () => report.opened(), 1],
    ['connected', () => report.ended({ ...end, wasOpen: true }), 0],
    ['responses', () => report.received(), 1],
    ['acks', () => report.acknowledged(), 1],
    ['nacks', () => report.refused(), 1],
    ['reconnects', () => report.connecting(url), 1],
  ];
  report.connecting(url);
  t.deepEqual(metrics.snapshot(), new Map());
  for (const [name, happen, after] of events) {
    const expected = new Map(metrics.snapshot()).set(`ratelimit.xds.${name}`, after);
    happen();
    t.deepEqual(Object.fromEntries(metrics.snapshot()), Object.fromEntries(expected), name);
  }
  report.close();
});
