// Who is limited, from what three workers count to the sum of the control plane: held against the truth.
import test from 'ava';
import {
  createLimitedSum,
  fromText,
  toLimitedList,
  toLimitedPeriod,
} from '../../../control-plane/fleet/limited-values.ts';
import type { RuleHit } from '../../../worker/decision/hit.ts';
import { codes, type DescriptorStatus } from '../../../worker/decision/message.ts';
import { createLimitedValues } from '../../../worker/fleet/limited-values.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { createRandom } from '../../support/random.ts';

const ranks = 1_000_000;
const requestsOfWorker = 200_000;
const hit = {
  descriptorIndex: 0,
  match: { metricKey: 'd.k', metricKeyIsStatic: true },
} as RuleHit;
const nameOf = ({ text }: { readonly text: string }) => fromText(text).entries[0]?.value ?? '';
const over = { code: codes.overLimit } as DescriptorStatus;

/** Of a million values, drawn in proportion to 1 / rank^1.1. */
function createZipf(seed: number): () => number {
  const random = createRandom(seed);
  const sums = new Float64Array(ranks);
  let sum = 0;
  for (let rank = 1; rank <= ranks; rank++) {
    sum += rank ** -1.1;
    sums[rank - 1] = sum;
  }
  return () => {
    const drawn = (random.below(2 ** 32) / 2 ** 32) * sum;
    let [low, high] = [0, ranks - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] ?? 0) < drawn) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}

test('of a million values on three workers the 20 limited most are found, each within its bounds', (t) => {
  const draw = createZipf(11);
  const truth = new Map<string, number>();
  const sum = createLimitedSum();
  for (let number = 0; number < 3; number++) {
    const limited = createLimitedValues(createManualClock(), true);
    for (let index = 0; index < requestsOfWorker; index++) {
      const value = `${draw()}`;
      truth.set(value, (truth.get(value) ?? 0) + 1);
      const entries = [{ key: 'k', value }];
      const descriptors = [
        { entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false },
      ];
      limited.overLimit({ domain: 'd', hitsAddend: 0, descriptors }, [hit], [over], index);
    }
    const { values, unlistedAtMost } = limited.takePeriod();
    const message = {
      periodStart: 1,
      seconds: 60,
      unlistedAtMost,
      values: values.map(({ item, count, error }) => ({
        domain: item.domain,
        rule: item.metricKey,
        entries: item.entries,
        count,
        error,
      })),
    };
    sum.add(toLimitedList(toLimitedPeriod(message, 64 * 1024), undefined));
  }
  const told = sum.read(20);
  const largest = [...truth].sort(([, a], [, b]) => b - a).slice(0, 20);
  const names = new Set(told.values.map(nameOf));
  const found = largest.filter(([value]) => names.has(value)).length;
  t.log(`${found} of 20 found`);
  t.true(found >= 19, `${found} of 20`);
  for (const value of told.values) {
    const { atLeast, atMost } = value;
    const real = truth.get(nameOf(value)) ?? 0;
    t.true(atLeast <= real && real <= atMost, `${real} is not in ${atLeast} to ${atMost}`);
  }
});
