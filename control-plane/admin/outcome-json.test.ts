import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { runAtOnce } from '../../shared/in-slices.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { explainRequest } from '../explain/explained-request.ts';
import { Building } from '../snapshot/building.ts';
import type { CountersJson } from './counters-json.ts';
import { createExamine } from './examination.ts';
import { toOutcome } from './outcome-json.ts';
import { placedRules } from './rule-rows.ts';

const examine = createExamine(
  new Building({
    encode: loadProtos().rateLimitConfig.serialize,
    options: { mergeDomains: false, maxResponseBytes: 1_000_000, rollsOut: false },
    clock: systemClock,
  }),
);
const text = `domain: d
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 20, name: all }
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: free
    rate_limit: { unlimited: true }
  - key: vip
    rate_limit: { unit: minute, requests_per_unit: 9, replaces: [{ name: all }] }
`;
const { documents } = await examine({ files: [{ path: 'd.yaml', text }], problems: [] });

/** One descriptor for each key. */
function explain(...keys: readonly string[]) {
  const rules = placedRules(documents).get('d');
  if (rules === undefined) throw new Error('the rules are wrong');
  const descriptors = keys.map((key) => [{ key, value: 'ada' }]);
  return runAtOnce(explainRequest('d', rules, descriptors, 0));
}

type Answer = CountersJson['answers'][number];

function counterOf(change: Partial<Answer['counters'][number]> = {}) {
  const rule = { descriptor: 0, problem: null, rule: 'd.user', window: 'minute' };
  return { ...rule, used: 3, limit: 20, secondsUntilReset: 39, shadowMode: false, ...change };
}

function countersOf(...answers: readonly (Pick<Answer, 'counters'> & Partial<Answer>)[]) {
  const all = answers.map((answer, index) => ({
    worker: `w-${index}`,
    address: '10.0.0.1:5',
    group: `${index}`,
    together: 1,
    differs: false,
    problem: null,
    confirmedBy: null,
    ...answer,
  }));
  return { answers: all, notAsked: 0, missing: [] };
}

const over = counterOf({ used: 232 });
const cases: Readonly<Record<string, readonly [string[], CountersJson | string, string, string]>> =
  {
    'a counter that is used up': [
      ['user'],
      countersOf({ counters: [over] }),
      'refused',
      'Refused now (429): 232 of 20 a minute, free again in 39 s',
    ],
    'a counter with its last hit taken': [
      ['user'],
      countersOf({ counters: [counterOf({ used: 20 })] }),
      'refused',
      'Refused now (429): 20 of 20 a minute, free again in 39 s',
    ],
    'a counter with one hit left': [
      ['user'],
      countersOf({ counters: [counterOf({ used: 19 })] }),
      'passes',
      'Passes',
    ],
    'a limit in shadow mode': [
      ['user'],
      countersOf({ counters: [{ ...over, shadowMode: true }] }),
      'shadow',
      'Passes: shadow mode, would be refused: 232 of 20 a minute, free again in 39 s',
    ],
    'two limits, of which one is in shadow mode': [
      ['user', 'path'],
      countersOf({
        counters: [
          { ...over, shadowMode: true, secondsUntilReset: 50 },
          counterOf({ descriptor: 1, used: 5, limit: 5, window: 'hour', secondsUntilReset: 600 }),
        ],
      }),
      'refused',
      'Refused now (429): 5 of 5 an hour, free again in 600 s',
    ],
    'a window of several units': [
      ['user'],
      countersOf({ counters: [counterOf({ used: 20, window: '5_minute', secondsUntilReset: 0 })] }),
      'refused',
      'Refused now (429): 20 of 20 in 5 minutes',
    ],
    'a limit of nothing': [
      ['user'],
      countersOf({ counters: [counterOf({ used: 0, limit: 0 })] }),
      'refused',
      'Refused now (429): the limit is 0',
    ],
    'workers that count apart': [
      ['user'],
      countersOf({ counters: [counterOf()] }, { counters: [over] }, { counters: [over] }),
      'refused',
      'Refused now (429) by 2 of 3 workers: 232 of 20 a minute, free again in 39 s',
    ],
    'workers of which one gives no answer': [
      ['user'],
      countersOf({ counters: [], problem: 'no answer within 1.5s' }, { counters: [counterOf()] }),
      'passes',
      'Passes',
    ],
    'workers of which none gives an answer': [
      ['user'],
      countersOf({ counters: [], problem: 'no answer within 1.5s' }),
      'not_known',
      'Not known now: no answer within 1.5s',
    ],
    'no workers': [
      ['user'],
      'no worker has a link',
      'not_known',
      'Not known now: no worker has a link',
    ],
    'a key that no rule is for': [['other'], 'no worker', 'passes', 'Passes: no limit is for it'],
    'an unlimited rule': [['free'], 'no worker', 'passes', 'Passes: unlimited'],
    'a limit that another descriptor replaces': [
      ['user', 'vip'],
      countersOf({ counters: [over, counterOf({ descriptor: 1, limit: 9, rule: 'd.vip' })] }),
      'passes',
      'Passes',
    ],
  };
for (const [what, [keys, counters, kind, said]] of Object.entries(cases)) {
  test(`what becomes of a request: ${what}`, (t) => {
    const { freeInSeconds, ...outcome } = toOutcome(explain(...keys), counters);
    const free = freeInSeconds === null ? '' : `, free again in ${freeInSeconds} s`;
    t.deepEqual({ ...outcome, text: `${outcome.text}${free}` }, { kind, text: said } as never);
  });
}
