// Builds revisions: small ones at once, large ones in a thread of their own, which is ended if it takes too long or
// needs too much memory. The files are untrusted, and the event loop must serve workers and probes.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { runAtOnce, runInSlices } from '../../../shared/in-slices.ts';
import { HeldByKey } from '../../../shared/made-once.ts';
import { type ParsedDocument, parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { mayHaveAnchor } from '../../../shared/rules/yaml/yaml-node.ts';
import { findTooMuchText } from '../../../shared/rules-file.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { type JobThread, TooBusy, TooMuch } from '../../../shared/thread/job-thread.ts';
import { RulesChecker } from '../../authoring/checked-rules.ts';
import type { Revision } from '../store/revision.ts';
import { createWorkThread } from '../work-thread.ts';
import {
  type BuildOptions,
  type BuildOutcome,
  type BuiltSnapshots,
  buildSnapshots,
  type Encode,
  listProblems,
} from './build.ts';
import {
  type Needs,
  type Received,
  receiveBuilt,
  toJobPieces,
  withRulesOf,
} from './building-pieces.ts';
import { type Snapshot, variants } from './snapshot.ts';

type Files = Pick<Revision, 'files' | 'problems'>;

export interface Built {
  readonly outcome: BuildOutcome;
  /** All documents that could be read. */
  readonly documents: readonly RuleDocument[];
}

export interface BuildingDeps {
  readonly options: BuildOptions;
  readonly encode: Encode;
  readonly clock: Clock;
  /** Default: a new one. */
  readonly known?: KnownBuilds;
  /** Ended together with the Building; default: a new one. */
  readonly thread?: JobThread;
}

type Good = Extract<BuildOutcome, { readonly ok: true }>;

/** The inputs of a build. */
interface Made {
  readonly problems: Revision['problems'];
  readonly files: ReadonlyMap<string, MadeFile>;
  readonly snapshots: ReadonlyMap<string, Snapshot>;
  readonly outcome: Good;
}
interface MadeFile {
  readonly text: string;
  readonly document: RuleDocument | undefined;
}

/** Documents, snapshots and builds still in use, so that equal files share one document, equal snapshots one object,
 * and equal revisions one build, whichever revision they are in and whoever requests them. Their files are retained as
 * long as they are. */
export class KnownBuilds {
  readonly checker: RulesChecker;
  readonly #made = new HeldByKey<BuiltSnapshots, Made>();
  #builds: readonly WeakRef<BuiltSnapshots>[] = [];

  constructor({ mergeDomains }: Pick<BuildOptions, 'mergeDomains'>) {
    this.checker = new RulesChecker({ mergeDomains });
  }

  /** The documents of these files, by path. In steps. */
  *findDocuments(files: Revision['files']): Generator<void, ReadonlyMap<string, RuleDocument>> {
    const found = new Map<string, RuleDocument>();
    const known = this.#alive();
    for (const { path, text } of files) {
      const same = known.find((each) => each.files.get(path)?.text === text);
      const document = same?.files.get(path)?.document;
      if (document !== undefined) found.set(path, document);
      yield;
    }
    return found;
  }

  findSnapshot(version: string): Snapshot | undefined {
    const known = this.#alive().find(({ snapshots }) => snapshots.has(version));
    return known?.snapshots.get(version);
  }

  /** The build of the same files, unless rules have ended since. */
  *findBuilt({ files, problems }: Files, nowMs: number): Generator<void, Good | undefined> {
    if (problems.length > 0) return undefined;
    for (const made of this.#alive()) {
      if (made.problems.length > 0 || !(yield* areSame(files, made.files))) continue;
      const { documents, ruleSet } = made.outcome.built;
      const checked = yield* this.checker.check(documents, nowMs);
      if (!checked.ok) return undefined;
      const { domains } = ruleSet;
      const isAsBefore = ([name, rules]: [string, object]) => domains.get(name) === rules;
      if ([...checked.rules.domains].every(isAsBefore)) return made.outcome;
    }
    return undefined;
  }

  /** In steps. */
  *store({ files, problems }: Files, outcome: Good): Generator<void, void> {
    const { built } = outcome;
    const documents = new Map<string, RuleDocument>();
    for (const document of built.documents) {
      documents.set(document.file, document);
      yield;
    }
    const made = new Map<string, MadeFile>();
    for (const { path, text } of files) {
      made.set(path, { text, document: documents.get(path) });
      yield;
    }
    const snapshots = new Map<string, Snapshot>();
    for (const group of built.groups) {
      for (const variant of variants) snapshots.set(group[variant].version, group[variant]);
    }
    this.#builds = [...this.#builds.filter((each) => each.deref()), new WeakRef(built)];
    this.#made.set(built, { problems, files: made, snapshots, outcome });
  }

  /** The newest first. */
  #alive(): readonly Made[] {
    const builds = this.#builds.flatMap((each) => each.deref() ?? []);
    return builds.flatMap((built) => this.#made.get(built) ?? []).reverse();
  }
}

function* areSame(files: Revision['files'], made: Made['files']): Generator<void, boolean> {
  if (files.length !== made.size) return false;
  for (const { path, text } of files) {
    yield;
    if (made.get(path)?.text !== text) return false;
  }
  return true;
}

/** Size of all files, in characters, that takes some milliseconds to build: 7 in the worst case. */
const fewCharacters = 2 * 1024;

/** Whether the files may take longer to build than other work on the event loop can wait. */
export function isLarge({ files }: Pick<Revision, 'files'>): boolean {
  let characters = 0;
  for (const { path, text } of files) {
    characters += path.length + text.length;
    if (characters > fewCharacters || mayHaveAnchor(text)) return true;
  }
  return false;
}

export class Building {
  readonly #deps: BuildingDeps;
  readonly #known: KnownBuilds;
  readonly #thread: JobThread;

  constructor(deps: BuildingDeps) {
    this.#deps = deps;
    this.#known = deps.known ?? new KnownBuilds(deps.options);
    this.#thread = deps.thread ?? createWorkThread({ clock: deps.clock });
  }

  /** Builds at once if the files are small. If the files cannot be built, a problem has the reason; rejects with a
   * TooBusy. */
  build(revision: Files): Built | Promise<Built> {
    const problem = findTooMuchText(revision.files, 'error');
    if (problem !== undefined)
      return { outcome: { ok: false, problems: [problem] }, documents: [] };
    return isLarge(revision) ? this.#buildLarge(revision) : this.#buildNow(revision);
  }

  /** Like `build`, but without the results that are derived from the files. */
  async findProblems(revision: Files): Promise<Pick<Received, 'ok' | 'problems'>> {
    const problem = findTooMuchText(revision.files, 'error');
    if (problem !== undefined) return { ok: false, problems: [problem] };
    if (isLarge(revision)) {
      const { ok, problems, advice } = await this.#inThread(revision, new Map(), 'problems');
      return { ok, problems: [...problems, ...advice] };
    }
    const { outcome } = this.#buildNow(revision);
    return { ok: outcome.ok, problems: listProblems(outcome) };
  }

  /** One file, not built: its document as returned by withRulesOf. */
  async readDocument(text: string, path: string, rulesOf = ''): Promise<ParsedDocument> {
    const files = { files: [{ path, text }], problems: [] };
    if (!isLarge(files)) {
      const { document, problems } = parseRuleDocument(text, path);
      return { document: document && withRulesOf(document, rulesOf), problems };
    }
    const { documents, problems } = await this.#inThread(files, new Map(), { rulesOf });
    return { document: documents[0], problems };
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #buildNow(revision: Files): Built {
    const { options, encode, clock } = this.#deps;
    const known = this.#known;
    const documents: RuleDocument[] = [];
    const outcome = buildSnapshots(revision, options, {
      encode,
      nowMs: clock.wallMs(),
      parse(text, path) {
        const parsed = parseRuleDocument(text, path);
        if (parsed.document !== undefined) documents.push(parsed.document);
        return parsed;
      },
      findSnapshot: (version) => known.findSnapshot(version),
    });
    if (outcome.ok) runAtOnce(known.store(revision, outcome));
    return { outcome, documents };
  }

  async #buildLarge(revision: Files): Promise<Built> {
    const { clock } = this.#deps;
    const known = this.#known;
    const nowMs = clock.wallMs();
    const same = await runInSlices(known.findBuilt(revision, nowMs));
    if (same !== undefined) return { outcome: same, documents: same.built.documents };
    const unchanged = await runInSlices(known.findDocuments(revision.files));
    const needs = { known: new Set(unchanged.keys()) };
    const received = await this.#inThread(revision, unchanged, needs, nowMs);
    const { built, problems, advice, documents } = received;
    if (built === undefined) return { outcome: { ok: false, problems }, documents };
    const checked = await runInSlices(known.checker.check(documents, nowMs));
    if (!checked.ok) return { outcome: checked, documents };
    const complete = Object.freeze({ ...built, ruleSet: checked.rules });
    const outcome: Good = { ok: true, built: complete, warnings: problems, advice };
    await runInSlices(known.store(revision, outcome));
    return { outcome, documents };
  }

  async #inThread(
    revision: Files,
    unchanged: ReadonlyMap<string, RuleDocument>,
    needs: Needs,
    nowMs = this.#deps.clock.wallMs(),
  ): Promise<Received> {
    const { options } = this.#deps;
    const findSnapshot = (version: string) => this.#known.findSnapshot(version);
    try {
      return await this.#thread.run({
        subject,
        size: revision.files.reduce((sum, { text }) => sum + text.length, 0),
        send: toJobPieces({ revision, options, nowMs, needs }),
        receive: (next) => receiveBuilt(next, { documents: unchanged, findSnapshot }),
      });
    } catch (error) {
      if (error instanceof TooBusy) throw error;
      const reason =
        error instanceof TooMuch
          ? error.message
          : `${subject} cannot be examined: ${errorText(error)}`;
      const problem = tooMuch(revision, reason);
      return { ok: false, problems: [problem], advice: [], documents: [], built: undefined };
    }
  }
}

const subject = 'the configuration';

/** The problem is placed at the largest file, which is the likely reason. */
function tooMuch({ files }: Files, reason: string): Problem {
  const [first] = files;
  const largest = files.reduce((a, b) => (b.text.length > a.text.length ? b : a), first ?? none);
  const mebibytes = (largest.text.length / 1024 / 1024).toFixed(1);
  const hint = `the largest file is ${toExcerpt(largest.path)} with ${mebibytes} MiB; give it fewer rules`;
  return problemOf('error', 'too-large', largest.path, reason, hint);
}

const none = { path: '(all files)', text: '' };
