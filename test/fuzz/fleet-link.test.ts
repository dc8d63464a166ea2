// Sends arbitrary reports of workers over their link: what the control plane keeps and shows stays bounded, and its
// numbers stay valid.
import test from 'ava';
import { toTop } from '../../control-plane/server/admin/controllers/top.ts';
import { findingRuleOwners } from '../../control-plane/server/admin/rule-owners.ts';
import { toTrafficJson } from '../../control-plane/server/admin/traffic-json.ts';
import { createFleet } from '../../control-plane/server/fleet/fleet.ts';
import { TrafficHistory } from '../../control-plane/server/fleet/traffic-history.ts';
import { runAtOnce } from '../../shared/in-slices.ts';
import { loadFleetLink } from '../../shared/wire/fleet.ts';
import { createManualClock } from '../support/manual-clock.ts';
import type { Random } from '../support/random.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { damageBytes, damageJson, strangeWords } from './damage.ts';
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const method = loadFleetLink();

function toText(random: Random): string {
  return random.pick(['', 'd', 'd.k', 'x'.repeat(5_000), ...strangeWords]).toWellFormed();
}

function toNumber(random: Random): number {
  return random.pick([0, 1, 5, 100, 2 ** 31, 2 ** 53, 2 ** 63, 1.5, -1]);
}

function toMessage(random: Random): object {
  const several = <Item>(make: () => Item) => Array.from({ length: random.below(5) }, make);
  const entries = () => several(() => ({ key: toText(random), value: toText(random) }));
  const rule = () => ({
    rule: toText(random),
    hits: toNumber(random),
    overLimit: toNumber(random),
    nearLimit: toNumber(random),
  });
  const value = () => ({
    domain: toText(random),
    rule: toText(random),
    entries: entries(),
    count: toNumber(random),
    error: toNumber(random),
  });
  const kinds = ['hello', 'report', 'report', 'report', 'report', 'counters'] as const;
  const kind = random.pick(kinds);
  if (kind === 'hello') return { hello: { nodeId: toText(random), instance: toText(random) } };
  if (kind === 'counters')
    return { counters: { id: toNumber(random), problem: toText(random), counters: [{ used: 1 }] } };
  return {
    report: {
      version: toText(random),
      totals: { decisions: toNumber(random), durations: several(() => toNumber(random)) },
      seconds: random.pick([0, 5, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e300]),
      rules: several(rule),
      otherRules: rule(),
      limited: {
        periodStart: toNumber(random),
        seconds: random.pick([0, 30, -1, Number.NaN, Number.POSITIVE_INFINITY]),
        values: several(value),
        unlistedAtMost: toNumber(random),
      },
      unmatched: several(() => ({ domain: toText(random), entries: entries() })),
      store: {
        kind: toText(random),
        serversAway: toNumber(random),
        clockOffsetMs: random.pick([0, -5, Number.NaN, Number.NEGATIVE_INFINITY]),
      },
    },
  };
}

function toBytes(random: Random): Buffer {
  const message = toMessage(random);
  const given = random.chance(0.2) ? damageJson(random, message) : message;
  let bytes: Buffer;
  try {
    bytes = method.requestSerialize(given as never);
  } catch {
    // The reader need not reject what the library would refuse to write.
    bytes = method.requestSerialize(message);
  }
  return random.chance(0.2) ? damageBytes(random, bytes) : bytes;
}

function checkNumbers(shown: unknown, path = ''): void {
  if (typeof shown === 'number') {
    if (!Number.isFinite(shown) || shown < 0) throw new Error(`${path} is ${shown}`);
  } else if (typeof shown === 'string') {
    if (shown.length > 1_024) throw new Error(`${path} has ${shown.length} characters`);
  } else if (typeof shown === 'object' && shown !== null) {
    for (const [key, value] of Object.entries(shown)) checkNumbers(value, `${path}.${key}`);
  }
}

test.serial('a control plane shows numbers within bounds whatever workers report', async (t) => {
  const clock = createManualClock();
  const log = createRecordedLog();
  const fleet = createFleet({ method, history: new TrafficHistory(clock), log, clock });
  let accepted = 0;
  let ended = 0;
  await fuzz(t, 'reports of hostile workers', async (random) => {
    let end: string | undefined;
    const handler = fleet.open({
      peerAddress: '192.0.2.1:1',
      send: (_parts, onSent) => onSent(),
      finish: (_status, text) => {
        end ??= text;
      },
      abort() {},
    });
    const hello = { nodeId: 'w', instance: `${random.below(3)}`, agreement: 'a' };
    handler.onMessage(method.requestSerialize({ hello } as never));
    for (let index = random.below(6); index >= 0 && end === undefined; index--) {
      clock.advance(5_000);
      handler.onMessage(toBytes(random));
    }
    if (end === undefined) accepted++;
    else {
      ended++;
      checkNamedProblem(end);
    }
    const limited = await fleet.limited({}, 20);
    for (const { atLeast, atMost } of limited.values) {
      if (atLeast > atMost) throw new Error(`${atLeast} to ${atMost}`);
    }
    const workers = fleet.list();
    const facts = { workers: workers.length, limited, rates: fleet.rules() };
    checkNumbers(toTop([facts], runAtOnce(findingRuleOwners([])), () => undefined, 20));
    checkNumbers(toTrafficJson(workers));
    checkNumbers(fleet.history());
    checkNumbers(fleet.unmatched());
    checkNumbers([...fleet.counted().values()]);
    handler.onClose(false);
    if (fleet.list().length > 0) throw new Error('a worker that has left is still there');
  });
  fleet.stop();
  t.log(`${accepted} taken, ${ended} ended`);
  t.true(accepted > 0 && ended > 0);
});
