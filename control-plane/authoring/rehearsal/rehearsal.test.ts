import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { codes } from '../../../worker/decision/message.ts';
import { parseWorkerSettings } from '../../../worker/settings.ts';
import { createRehearsal } from './rehearsal.ts';
import { createRulesInTime } from './rules-in-time.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');

function rehearse(descriptors: string) {
  const { document } = parseRuleDocument(`domain: d\ndescriptors: ${descriptors}`, 'rules.yaml');
  const read = parseWorkerSettings({ BACKEND_TYPE: 'memory' });
  if (document === undefined || !read.ok) throw new Error('the rules or the settings are wrong');
  const rules = createRulesInTime([document], { mergeDomains: false, sanitizeMetricDots: false });
  const rehearsal = createRehearsal({ rules, settings: read.settings, startMs });
  const ask = (atMs: number, value = 'v') => {
    const entries = [{ key: 'k', value }];
    const descriptor = { entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false };
    const request = { domain: 'd', descriptors: [descriptor], hitsAddend: 0 };
    const { outcome, matches } = rehearsal.decide(request, startMs + atMs);
    const [match] = matches;
    const found = match && rehearsal.find('d', entries, match);
    if (!outcome.ok) return outcome.error.message;
    const [status] = outcome.response.statuses;
    const isOver = outcome.response.overallCode === codes.overLimit;
    return `${found?.name} ${isOver ? 'over' : status?.limitRemaining}`;
  };
  return { ask, rehearsal };
}

test('a decision is made at once, on the counters of the earlier ones', (t) => {
  const { ask, rehearsal } = rehearse(
    '[{key: k, rate_limit: {unit: second, requests_per_unit: 2}}]',
  );
  t.deepEqual([ask(0), ask(10), ask(999)], ['d.k 1', 'd.k 0', 'd.k over']);
  t.is(ask(1_000), 'd.k 1');
  t.is(rehearsal.statistics().get('ratelimit.service.rate_limit.d.k.over_limit'), 1);
});

test('a late request counts in the window of its own time', (t) => {
  const { ask } = rehearse('[{key: k, rate_limit: {unit: second, requests_per_unit: 9}}]');
  t.deepEqual([ask(900), ask(1_001), ask(950), ask(1_002)], ['d.k 8', 'd.k 8', 'd.k 7', 'd.k 7']);
});

test('tokens are refilled as the clock advances', (t) => {
  const { ask } = rehearse(
    '[{key: k, rate_limit: {unit: minute, requests_per_unit: 60, burst: 2, algorithm: token_bucket}}]',
  );
  t.deepEqual([ask(0), ask(0), ask(999)], ['d.k 1', 'd.k 0', 'd.k over']);
  t.is(ask(1_000), 'd.k 0');
});

test('sliding windows count in whole milliseconds', (t) => {
  const { ask } = rehearse(
    '[{key: k, rate_limit: {unit: second, requests_per_unit: 3, algorithm: sliding_window}}]',
  );
  t.deepEqual([ask(0), ask(0), ask(0), ask(1_333.9)].slice(2), ['d.k 0', 'd.k over']);
});

test('a rule that ends is named by its own position while it lasts', (t) => {
  const { ask } = rehearse(
    '[{key: k, value: v, until: 2026-01-01T00:00:01Z, rate_limit: {unit: hour, requests_per_unit: 1}}, {key: k, rate_limit: {unit: hour, requests_per_unit: 5}}]',
  );
  t.deepEqual([ask(0), ask(999), ask(1_000)], ['d.k_v 0', 'd.k_v over', 'd.k 2']);
});
