import test from 'ava';
import { parseWorkerSettings } from '../settings.ts';
import { toRuleSetOptions } from './rule-set-options.ts';

function optionsOf(environment: Readonly<Record<string, string>>) {
  const result = parseWorkerSettings(environment);
  if (!result.ok) throw new Error(result.problems.join());
  return toRuleSetOptions(result.settings);
}

test('rules are built by the settings and the capabilities of the store', (t) => {
  t.deepEqual(
    optionsOf({
      BACKEND_TYPE: 'memory',
      MERGE_DOMAIN_CONFIG: 'true',
      SANITIZE_DESCRIPTOR_METRIC_DOTS: 'true',
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
    }),
    { mergeDomains: true, sanitizeMetricDots: true, fixedWindowsOnly: false, warnsOfStops: true },
  );
  t.deepEqual(
    optionsOf({
      BACKEND_TYPE: 'memcache',
      MEMCACHE_HOST_PORT: 'h:1',
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
    }),
    { mergeDomains: false, sanitizeMetricDots: false, fixedWindowsOnly: true, warnsOfStops: false },
  );
});
