// The snapshots in force, made from the revisions of a store: all of a revision or nothing of it, and
// the last good one for as long as there is no better. Serving them is left to control-plane/xds.

import type { Clock } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { formatDuration } from '../../shared/duration.ts';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { isError, type Problem } from '../../shared/rules/problem.ts';
import { formatProblem, logProblems } from '../../shared/rules/problem-text.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import { type Revision, type RevisionInfo, toRevisionInfo, toShortId } from '../store/revision.ts';
import type { ConfigStore, StoreStatus } from '../store/store.ts';
import {
  type BuildOptions,
  type BuildOutcome,
  type BuiltSnapshots,
  buildSnapshots,
  type GroupSnapshots,
  selectGroup,
  selectSnapshot,
} from './build.ts';
import { createLastGood } from './last-good.ts';
import { createRememberingParser } from './remembering-parser.ts';
import { findRemoval, saysRemoval } from './removal-guard.ts';
import type { NodeIdentity, Snapshot, SnapshotProvider } from './snapshot.ts';
import type { InForceState, SnapshotState, Staleness } from './snapshot-state.ts';

export interface SnapshotCache extends SnapshotProvider {
  /**
   * Resolves when the store's newest revision has been looked at, good or bad: it is in force, or the
   * last good one that an earlier process kept, or nothing (then `current` gives undefined, so that
   * workers keep what they have). From then on the store is followed. Never rejects for what the store
   * or its files are; `state` and the log say it.
   */
  start(): Promise<void>;
  /** The name of the group that a node is in; undefined as long as nothing is in force. */
  groupOf(node: NodeIdentity): string | undefined;
  state(): SnapshotState;
  /** Serves the revision that is held back; false when it is not this one that is. */
  approve(revisionId: string): boolean;
  /** To explain decisions by; undefined as long as nothing is in force. */
  readonly ruleSet: RuleSet | undefined;
  /** Resolves when what is in force is kept on disk. Idempotent; the store is left open. */
  close(): Promise<void>;
}

export interface SnapshotCacheDeps {
  readonly store: ConfigStore;
  readonly options: BuildOptions;
  /** Whether a revision may take most limits away without an approval. */
  readonly allowsRemoval: boolean;
  readonly encode: (message: RateLimitConfigMessage) => Buffer;
  /** Of this control plane alone; keeps the last good revision. Made when it is missing. */
  readonly stateDirectory: string;
  readonly log: Log;
  readonly clock: Clock;
}

interface InForce {
  readonly revision: RevisionInfo;
  readonly sinceMs: number;
  readonly built: BuiltSnapshots;
}

/** A good one that takes too much away is refused as if it had errors. */
type TakenOutcome =
  | (BuildOutcome & { readonly ok: true })
  | (BuildOutcome & { readonly ok: false; readonly isHeldBack?: boolean });

type Kept =
  | { readonly revision: Revision; readonly outcome: BuildOutcome }
  | { readonly trouble: string };

interface Newest {
  readonly revision: RevisionInfo;
  readonly problems: readonly Problem[];
  /** Wall time since when the newest revision is invalid, whichever it is; undefined when it is not. */
  readonly invalidSinceMs: number | undefined;
  /** The revision, when it is good and only held back. */
  readonly heldBack: Revision | undefined;
}

export function createSnapshotCache(deps: SnapshotCacheDeps): SnapshotCache {
  const { store, options, encode, stateDirectory, log, clock } = deps;
  const lastGood = createLastGood({ stateDirectory, store: store.description, log });
  const parse = createRememberingParser();
  const listeners = new Set<() => void>();
  let inForce: InForce | undefined;
  /** What an earlier process served, until this one serves something. */
  let servedBefore: { readonly id: string; readonly ruleSet: RuleSet } | undefined;
  let newest: Newest | undefined;
  let saidWarnings: ReadonlySet<string> = new Set();
  let stopWatching = () => {};
  let accepted = 0;
  let refused = 0;

  function apply(revision: Revision): void {
    if (revision.id === newest?.revision.id) return;
    take(revision, heldBackUnlessAllowed(revision, build(revision)));
  }

  function heldBackUnlessAllowed(revision: Revision, outcome: BuildOutcome): TakenOutcome {
    const before = inForce
      ? { id: inForce.revision.id, ruleSet: inForce.built.ruleSet }
      : servedBefore;
    if (!outcome.ok || before === undefined || before.id === revision.id) return outcome;
    if (deps.allowsRemoval || saysRemoval(revision)) return outcome;
    const removal = findRemoval(before.ruleSet, outcome.built.ruleSet);
    if (removal === undefined) return outcome;
    return { ok: false, problems: [...outcome.warnings, removal], isHeldBack: true };
  }

  function take(revision: Revision, outcome: TakenOutcome): void {
    const info = toRevisionInfo(revision);
    const problems = outcome.ok ? outcome.warnings : outcome.problems;
    const wasInvalid = newest?.invalidSinceMs !== undefined;
    newest = {
      revision: info,
      problems,
      invalidSinceMs: outcome.ok ? undefined : (newest?.invalidSinceMs ?? clock.wallMs()),
      heldBack: outcome.ok || !outcome.isHeldBack ? undefined : revision,
    };
    if (!outcome.ok) {
      refused++;
      sayRefused(info, problems);
      return;
    }
    accepted++;
    const isFirst = inForce === undefined;
    const isNews = serve(info, outcome.built);
    lastGood.keep(revision);
    sayWarnings(outcome.warnings);
    const text = `Revision ${toTitle(info)} is in force: ${countsOf(outcome.built)}${isNews ? '' : '; nothing changes for the workers'}`;
    // Seen at the default level when it answers a question: what is served, and whether a repair worked.
    if (isFirst || wasInvalid) log.notice(text);
    else log.info(text);
  }

  function build(revision: Revision): BuildOutcome {
    return buildSnapshots(revision, options, { encode, parse: parse.next() });
  }

  /** True when any node gets something else. */
  function serve(revision: RevisionInfo, built: BuiltSnapshots): boolean {
    const before = inForce;
    const groups = before ? keepIdentities(built.groups, before.built.groups) : built.groups;
    inForce = { revision, sinceMs: clock.wallMs(), built: { ...built, groups } };
    const isNews = before === undefined || !isSameToAll(before.built.groups, groups);
    if (isNews) for (const listener of [...listeners]) listener();
    return isNews;
  }

  /** What an earlier process kept; undefined without one, `trouble` when it cannot be read. */
  async function readKept(): Promise<Kept | undefined> {
    try {
      const revision = await lastGood.read();
      return revision && { revision, outcome: build(revision) };
    } catch (error) {
      return { trouble: `The last good revision cannot be restored: ${errorText(error)}` };
    }
  }

  /** `why` there is nothing better. */
  function restore(kept: Kept | undefined, why: string): void {
    if (kept === undefined) {
      log.error(`${why}, and no earlier revision was kept: workers get nothing until there is one`);
      return;
    }
    if ('trouble' in kept) {
      log.error(kept.trouble);
      return;
    }
    const { revision, outcome } = kept;
    const info = toRevisionInfo(revision);
    if (!outcome.ok) {
      sayRefused(info, outcome.problems);
      return;
    }
    serve(info, outcome.built);
    const age = formatDuration(Math.max(0, Math.round((clock.wallMs() - info.atMs) / 1000)) * 1000);
    log.warning(
      `${why}: the last good revision ${toTitle(info)}, ${age} old, is in force: ${countsOf(outcome.built)}`,
    );
  }

  function sayRefused(info: RevisionInfo, problems: readonly Problem[]): void {
    const errors = problems.filter(isError);
    const consequence =
      inForce === undefined
        ? 'nothing is in force'
        : `revision ${toShortId(inForce.revision.id)} stays in force`;
    logProblems(
      log.error,
      errors,
      `Revision ${toTitle(info)} of ${store.description} is not served`,
      `${toCountText(errors.length, 'error')}: ${consequence}`,
    );
  }

  /** A warning is said when it appears, not with each revision that still has it. */
  function sayWarnings(warnings: readonly Problem[]): void {
    const texts = warnings.map(formatProblem);
    const fresh = warnings.filter((_, index) => !saidWarnings.has(texts[index] ?? ''));
    logProblems(log.warning, fresh, 'Configuration');
    saidWarnings = new Set(texts);
  }

  async function readStore(): Promise<{ revision: Revision | undefined; trouble: string }> {
    try {
      const revision = await store.read();
      return { revision, trouble: `Revision ${toShortId(revision.id)} is not served` };
    } catch (error) {
      const trouble = `The store ${store.description} cannot be read (${errorText(error)})`;
      return { revision: undefined, trouble };
    }
  }

  function toStaleness(status: StoreStatus): Staleness | undefined {
    if (newest?.invalidSinceMs !== undefined) {
      return { reason: 'newest_invalid', sinceMs: newest.invalidSinceMs };
    }
    return status.failingSinceMs === undefined
      ? undefined
      : { reason: 'store_unreachable', sinceMs: status.failingSinceMs };
  }

  return {
    async start() {
      const found = await readStore();
      const kept = await readKept();
      if (kept !== undefined && 'outcome' in kept && kept.outcome.ok) {
        servedBefore = { id: kept.revision.id, ruleSet: kept.outcome.built.ruleSet };
      }
      if (found.revision !== undefined) apply(found.revision);
      if (inForce === undefined) restore(kept, found.trouble);
      servedBefore = undefined;
      stopWatching = store.watch(apply);
    },
    current: (node) => inForce && selectSnapshot(inForce.built.groups, node),
    groupOf: (node) => inForce && selectGroup(inForce.built.groups, node)?.group.name,
    onChange(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    get ruleSet() {
      return inForce?.built.ruleSet;
    },
    state() {
      const status = store.status();
      return {
        store: status,
        newest: newest && {
          revision: newest.revision,
          valid: newest.invalidSinceMs === undefined,
          isHeldBack: newest.heldBack !== undefined,
          problems: newest.problems,
        },
        inForce: inForce && toState(inForce),
        stale: toStaleness(status),
        counts: { accepted, refused },
      };
    },
    approve(revisionId) {
      const heldBack = newest?.heldBack;
      if (heldBack?.id !== revisionId) return false;
      take(heldBack, build(heldBack));
      return true;
    },
    async close() {
      stopWatching();
      listeners.clear();
      await lastGood.settled();
    },
  };
}

/** Equal content stays the same object, by which the senders know that there is nothing to send. */
function keepIdentities(
  groups: readonly GroupSnapshots[],
  before: readonly GroupSnapshots[],
): GroupSnapshots[] {
  const known = new Map<string, Snapshot>();
  for (const { ours, others } of before) known.set(ours.version, ours).set(others.version, others);
  const keep = (snapshot: Snapshot) => known.get(snapshot.version) ?? snapshot;
  return groups.map((each) => ({ ...each, ours: keep(each.ours), others: keep(each.others) }));
}

function isSameToAll(before: readonly GroupSnapshots[], after: readonly GroupSnapshots[]): boolean {
  // Conditions count as well: a node may be in another group without any group's having changed.
  const shown = (groups: readonly GroupSnapshots[]) =>
    JSON.stringify(
      groups.map(({ group: { match }, ours, others }) => [
        match.id?.map(({ text }) => text),
        match.cluster?.map(({ text }) => text),
        [...match.metadata].map(([name, patterns]) => [name, patterns.map(({ text }) => text)]),
        ours.version,
        others.version,
      ]),
    );
  return shown(before) === shown(after);
}

function toState({ revision, sinceMs, built }: InForce): InForceState {
  return {
    revision,
    sinceMs,
    domains: built.domains,
    limitCount: built.ruleSet.limitCount,
    groups: built.groups.map(({ group, domains, ours, others }) => ({
      name: group.name,
      domains,
      oursVersion: ours.version,
      othersVersion: others.version,
    })),
    leftOut: [...built.leftOut].map(([domain, fields]) => ({ domain, fields })),
  };
}

function countsOf({ domains, ruleSet }: BuiltSnapshots): string {
  return `${toCountText(domains.length, 'domain')}, ${toCountText(ruleSet.limitCount, 'limit')}`;
}

/** `1a2b3c4d5e6f ("first line of the message", name)`. */
function toTitle({ id, author, message }: RevisionInfo): string {
  const line = message?.split('\n')[0]?.slice(0, 72);
  const parts = [line === undefined ? undefined : `"${line}"`, author].filter(
    (part) => part !== undefined,
  );
  return parts.length === 0 ? toShortId(id) : `${toShortId(id)} (${parts.join(', ')})`;
}
