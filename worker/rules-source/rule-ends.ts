// Rebuilds the rules in force when one of them ends (behaviour: rules-that-end), so that decisions never check the end
// of a rule. The clock may be set: it is read again at least every few seconds.
import type { Clock } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { runInSlices } from '../../shared/in-slices.ts';
import type { Log } from '../../shared/log.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { countEnded, hasEnds, nextEndOf } from '../../shared/rules/rule-end.ts';
import type { RuleSetBuilder } from '../../shared/rules/rule-set.ts';
import type { GoodLoad } from './source.ts';

export interface RuleEnds {
  /** Follows the rules of this load instead of the previous ones. */
  follow(load: GoodLoad): void;
  close(): void;
}

export interface RuleEndsDeps {
  /** The builder of the source: domains in which no rule ends stay as it built them. */
  readonly builder: RuleSetBuilder;
  /** Called with the same documents and those of their rules that are in force from now on. */
  readonly onChange: (load: GoodLoad) => void;
  readonly log: Log;
  readonly clock: Clock;
}

/** Milliseconds: the clock may be set while a timer waits, and a timer waits for at most 24 days. */
const longestWait = 5_000;

export function createRuleEnds({ builder, onChange, log, clock }: RuleEndsDeps): RuleEnds {
  let followed: GoodLoad | undefined;
  /** Those documents of the load in which rules end. */
  let ending: readonly RuleDocument[] = [];
  let cancel = () => {};

  function waitFor(load: GoodLoad): void {
    const nowMs = clock.wallMs();
    if (countEnded(ending, nowMs) !== countEnded(ending, load.atMs)) void change(load, nowMs);
    else if (ending.length > 0) {
      // Continues after the last end: setting the clock back restores rules.
      const nextMs = nextEndOf(ending, nowMs) ?? Number.POSITIVE_INFINITY;
      cancel = clock.after(Math.max(1, Math.min(longestWait, nextMs - nowMs)), () => waitFor(load));
    }
  }

  /** Decisions continue meanwhile, with the previous rules. */
  async function change(load: GoodLoad, nowMs: number): Promise<void> {
    const { documents, atMs } = load;
    const built = await runInSlices(builder.build(documents, nowMs));
    if (followed !== load) return;
    if (!built.ok) {
      // Only happens when the clock was set back by more than `until` may be ahead.
      log.error('Rules that were accepted cannot be built again: the earlier ones stay in force');
      cancel = clock.after(longestWait, () => waitFor(load));
      return;
    }
    const ended = countEnded(documents, nowMs) - countEnded(documents, atMs);
    log.notice(
      ended > 0
        ? `${toCountText(ended, 'rule')} ended: requests now match the rules without ${ended === 1 ? 'it' : 'them'}`
        : `The clock was set back: ${toCountText(-ended, 'rule')} that had ended ${ended === -1 ? 'is' : 'are'} in force again`,
    );
    const changed = { ...load, ruleSet: built.ruleSet, atMs: nowMs };
    onChange(changed);
    follow(changed);
  }

  function follow(load: GoodLoad): void {
    cancel();
    followed = load;
    ending = load.documents.filter(hasEnds);
    waitFor(load);
  }

  return {
    follow,
    close() {
      cancel();
      followed = undefined;
    },
  };
}
