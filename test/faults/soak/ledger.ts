// Records the requests and answers of each key, and checks that they agree with the limit, with the store's counter,
// and with the worker's reported store failures.
import { waitUntil } from '../../support/wait-until.ts';
import type { CallOutcome } from '../../support/worker-caller.ts';
import type { Configuration, SoakStore } from './configuration.ts';
import type { Findings } from './findings.ts';

/** The limit of every value of key `k`. */
export const limit = 20;
const hitsPerKey = 40;
const keysAtOnce = 10;
/** How much later an answered hit may be counted: in the background, or when a stall ends. */
const settleMs = 3_000;
/** Instead of `settleMs` if the worker reports no failure, on a machine that may stall. */
const patienceMs = 20_000;

export interface Entry {
  readonly value: string;
  readonly errorsBefore: number;
  sent: number;
  ok: number;
  over: number;
  failed: number;
  lastAnswerMs: number;
  /** The remaining hits reported in OK answers. */
  readonly left: Set<number>;
}

export type Ledger = ReturnType<typeof createLedger>;

export interface LedgerDeps {
  readonly prefix: string;
  readonly configuration: Configuration;
  readonly store: SoakStore;
  readonly findings: Findings;
  /** The worker's last report. */
  readonly errors: () => number;
  /** The worker's current report. */
  readonly readErrors: () => Promise<number>;
}

export function createLedger(deps: LedgerDeps) {
  const { prefix, configuration, store, findings } = deps;
  const { onFailure } = configuration;
  const active: Entry[] = [];
  const through: Entry[] = [];
  const checked: Entry[] = [];
  let made = 0;
  let turn = 0;
  /** OK answers beyond the limits, over all keys. */
  let excess = 0;

  function createEntry(): Entry {
    const value = `${prefix}${made++}`;
    const errorsBefore = deps.errors();
    return {
      value,
      errorsBefore,
      sent: 0,
      ok: 0,
      over: 0,
      failed: 0,
      lastAnswerMs: 0,
      left: new Set(),
    };
  }

  function next(): Entry {
    const index = turn++ % keysAtOnce;
    const entry = active[index] ?? createEntry();
    active[index] = entry;
    if (++entry.sent === hitsPerKey) {
      active[index] = createEntry();
      through.push(entry);
    }
    return entry;
  }

  function note(entry: Entry, { answer, remaining }: CallOutcome): void {
    const kind = answer === 'OK' ? 'ok' : answer === 'OVER_LIMIT' ? 'over' : 'failed';
    entry[kind]++;
    findings.answers[kind]++;
    entry.lastAnswerMs = performance.now();
    if (onFailure === 'error' || onFailure === 'deny') {
      findings.check('never more OK than the limit', entry.ok <= limit, toText(entry));
      if (kind !== 'ok' || remaining === undefined) return;
      const text = `${remaining} left twice; ${toText(entry)}`;
      findings.check('no two OK saw the same count', !entry.left.has(remaining), text);
      entry.left.add(remaining);
    }
  }

  async function checkEntry(entry: Entry): Promise<void> {
    const { value, sent, ok, over, failed } = entry;
    const isTroubled = async () => failed > 0 || (await deps.readErrors()) !== entry.errorsBefore;
    await waitUntil(
      async () => (await store.countOf(value)) === sent || (await isTroubled()),
      patienceMs,
    );
    const counter = await store.countOf(value);
    // Read afterwards: counting in the background may have failed only now.
    const errors = await deps.readErrors();
    const isExact = failed === 0 && errors === entry.errorsBefore;
    const text = `${toText(entry)}, counted ${counter}`;
    findings.check('no hit is counted twice', counter <= sent, text);
    if (isExact)
      findings.check('without faults the counts are exact', ok === limit && counter === sent, text);
    if (configuration.store === 'redis' && (onFailure === 'error' || isExact))
      findings.check('what was answered by Redis was counted', counter >= ok + over, text);
    if (onFailure !== 'deny')
      findings.check('no more refusals than the limit has', ok + failed >= limit, text);
    excess += Math.max(0, ok - limit);
    if (configuration.store === 'redis') {
      const detail = `${excess} too many, ${errors} decisions without the store; ${text}`;
      findings.check('OK beyond the limit is owed to the policy', excess <= errors, detail);
    }
  }

  return {
    /** The next value to request. */
    next,
    note,
    /** Checks the finished keys; with `all`, waits for them and checks every key again. */
    async check(all: boolean) {
      const now = performance.now();
      const isDue = (entry: Entry) =>
        entry.ok + entry.over + entry.failed === entry.sent &&
        (all || now - entry.lastAnswerMs > settleMs);
      for (const entry of through.filter(isDue)) {
        through.splice(through.indexOf(entry), 1);
        await checkEntry(entry);
        checked.push(entry);
      }
      if (!all) return;
      findings.check('every request is answered', through.length === 0, `${through.length} keys`);
      for (const entry of checked) {
        const counter = await store.countOf(entry.value);
        const text = `${toText(entry)}, counted ${counter} in the end`;
        findings.check('no hit is counted twice', counter <= entry.sent, text);
      }
    },
  };
}

function toText({ value, sent, ok, over, failed }: Entry): string {
  return `${value}: ${sent} sent, ${ok} OK of ${limit}, ${over} over, ${failed} failed`;
}
