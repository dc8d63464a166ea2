import test from 'ava';
import { systemClock } from '../../../../shared/clock.ts';
import { runAtOnce } from '../../../../shared/in-slices.ts';
import { loadProtos } from '../../../../shared/wire/protos.ts';
import { testLines } from '../../../../test/support/reviewed-lines.ts';
import { explainRequest } from '../../../authoring/explain/explained-request.ts';
import type { CountersJson } from '../../fleet/counter-answers.ts';
import { Building } from '../../snapshot/building.ts';
import { createExamine } from '../examination.ts';
import { locatingRules } from '../rule-rows.ts';
import { toOutcome } from './explanations.ts';

const examine = createExamine(
  new Building({
    encode: loadProtos().rateLimitConfig.serialize,
    options: { mergeDomains: false, maxResponseBytes: 1_000_000, rollsOut: false },
    clock: systemClock,
  }),
);
const text = `domain: d
descriptors:
  - {key: user, rate_limit: { unit: minute, requests_per_unit: 20, name: all }}
  - {key: path, rate_limit: { unit: hour, requests_per_unit: 5 }}
  - {key: free, rate_limit: { unlimited: true }}
  - {key: vip, rate_limit: { unit: minute, requests_per_unit: 9, replaces: [{ name: all }] }}
`;
const { documents } = await examine({ files: [{ path: 'd.yaml', text }], problems: [] });

/** One descriptor for each key. */
function explain(...keys: readonly string[]) {
  const rules = runAtOnce(locatingRules(documents)).get('d');
  if (rules === undefined) throw new Error('the rules are wrong');
  const descriptors = keys.map((key) => [{ key, value: 'ada' }]);
  return runAtOnce(explainRequest('d', rules, descriptors, 0));
}

/** `232 of 20 in 5_minute, free in 0, shadow`; all but the first part may be omitted, and default to a minute, 39
 * seconds and no shadow mode. */
function toCounter(text: string, descriptor: number) {
  const [, used, limit, window = 'minute', seconds = 39, shadow] =
    /^(\d+) of (\d+)(?: in (\w+))?(?:, free in (\d+))?(, shadow)?$/.exec(text) ?? [];
  return {
    ...{ descriptor, problem: null, rule: 'd.user', window },
    ...{ used: Number(used), limit: Number(limit), secondsUntilReset: Number(seconds) },
    shadowMode: shadow !== undefined,
  };
}

/** ` / ` separates workers, ` + ` separates counters of one worker, each of the next descriptor. */
function toCounters(text: string): CountersJson {
  const answers = text.split(' / ').map((answer, index) => ({
    ...{ worker: `w-${index}`, address: '10.0.0.1:5', group: `${index}`, together: 1 },
    ...{ differs: false, confirmedBy: null },
    ...(/^\d/.test(answer)
      ? { counters: answer.split(' + ').map(toCounter), problem: null }
      : { counters: [], problem: answer }),
  }));
  return { answers, notAsked: 0, missing: [] };
}

testLines(test, new URL('explanations.txt', import.meta.url), (given) => {
  const [, keys = '', worker, text = ''] = /^(.*?): (worker )?(.*)$/.exec(given) ?? [];
  const counters = worker === undefined ? text : toCounters(text);
  const { freeInSeconds, kind, text: shown } = toOutcome(explain(...keys.split(' ')), counters);
  return `${kind}: ${shown}${freeInSeconds === null ? '' : `, free again in ${freeInSeconds} s`}`;
});
