import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRegistry } from '../metrics/registry.ts';
import { LimitedValues } from './limited-values.ts';
import { LinkReports } from './link-report.ts';

test('a report has the quota service if Envoys use it, with the assignments since the previous report', (t) => {
  const metrics = createRegistry({ runtimeNamesMax: 100, log: createRecordedLog() });
  const reports = new LinkReports({
    ...{ metrics, limited: new LimitedValues(systemClock, false), clock: systemClock },
    ...{ values: 'none', storeKind: 'memory', version: () => 'v1' },
  });
  t.is(reports.drain().quota, null);
  metrics.gauge('ratelimit.quota.streams').set(2);
  metrics.gauge('ratelimit.quota.buckets').set(5);
  const assignments = metrics.counter('ratelimit.quota.assignments');
  assignments.add(7);
  t.deepEqual(reports.drain().quota, { streams: 2, buckets: 5, assignments: 7 });
  assignments.add(1);
  t.deepEqual(reports.drain().quota, { streams: 2, buckets: 5, assignments: 1 });
});
