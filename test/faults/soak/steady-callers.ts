// Calls a worker at a steady rate, and checks that each call is answered in time, with a decision or a helpful reason.
import type { Caller } from '../../support/worker-caller.ts';
import { storeTimeoutMs } from './configuration.ts';
import type { Findings } from './findings.ts';
import type { Ledger } from './ledger.ts';

const requestsPerSecond = 200;
/** The worker's own limits are 2 s and less; the rest is for a busy machine. */
const longestAnswerMs = 15_000;
/** A call that fails after about this time waited in vain: something stalled without a fault. */
const silentMs = storeTimeoutMs - 100;
/** A silent server counts as unreachable: until it is tried again, decisions fail at once. */
const awayMs = 10_000;

export interface SteadyCallersDeps {
  /** Used in turn. */
  readonly callers: readonly Caller[];
  readonly ledger: Ledger;
  readonly findings: Findings;
  /** Whether this text is a failure that callers may receive at all. */
  readonly isKnownFailure: (text: string) => boolean;
  readonly wasTroubledSince: (ms: number) => boolean;
}

export function startSteadyCallers(deps: SteadyCallersDeps) {
  const { callers, ledger, findings } = deps;
  const open = new Set<Promise<void>>();
  const beganMs = performance.now();
  /** When decisions failed without a fault: after waiting in vain, and otherwise. */
  const silences: number[] = [];
  const failures: { readonly failedMs: number; readonly text: string }[] = [];
  let sent = 0;

  async function ask(caller: Caller): Promise<void> {
    const entry = ledger.next();
    const askedMs = performance.now();
    const outcome = await caller.ask('d', 'k', entry.value);
    const { answer } = outcome;
    ledger.note(entry, outcome);
    const answeredMs = performance.now();
    const tookMs = Math.round(answeredMs - askedMs);
    const text = `${answer} after ${tookMs} ms`;
    findings.check('answers come in time', tookMs <= longestAnswerMs, text);
    if (!answer.startsWith('failed')) return;
    findings.check('a failure names the store', deps.isKnownFailure(answer), text);
    if (deps.wasTroubledSince(askedMs)) findings.check('no failure without a fault', true, text);
    else if (tookMs >= silentMs) silences.push(answeredMs);
    else failures.push({ failedMs: answeredMs, text });
  }

  function judgeFailures(): void {
    for (const { failedMs, text } of failures.splice(0)) {
      // All waiting calls fail together, and their answers arrive in any order.
      const isOwed = silences.some((ms) => failedMs > ms - 1_000 && failedMs < ms + awayMs);
      findings.check('no failure without a fault', isOwed, text);
    }
  }

  const timer = setInterval(() => {
    while (sent < ((performance.now() - beganMs) / 1000) * requestsPerSecond) {
      const caller = callers[sent++ % callers.length];
      if (caller === undefined) return;
      const asking = ask(caller).finally(() => open.delete(asking));
      open.add(asking);
    }
  }, 10);
  return {
    /** Resolves when every call is answered. Idempotent. */
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
      judgeFailures();
    },
  };
}
