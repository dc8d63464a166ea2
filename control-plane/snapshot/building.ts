// Builds revisions: few files at once, many in a thread of their own, which ends when they take too long or need too much
// memory. The files are other people's, and the event loop serves workers and probes.
import { totalmem } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../shared/clock.ts';
import { errorText } from '../../shared/errors.ts';
import { runInSlices } from '../../shared/in-slices.ts';
import { ownPath } from '../../shared/own-files.ts';
import { type ParsedDocument, parseRuleDocument } from '../../shared/rules/document/document.ts';
import { type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { createRuleSetBuilder, type RuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { ThreadOfJobs, TooMuch } from '../../shared/thread/job-thread.ts';
import type { Revision } from '../store/revision.ts';
import {
  type BuildOptions,
  type BuildOutcome,
  buildSnapshots,
  createRememberingParser,
  type Encode,
} from './build.ts';
import { type Needs, toJobPieces } from './building-job.ts';
import { type Received, receiveBuilt } from './built-pieces.ts';

type Files = Pick<Revision, 'files' | 'problems'>;

export interface Built {
  readonly outcome: BuildOutcome;
  /** All that could be read. */
  readonly documents: readonly RuleDocument[];
}

export interface BuildingDeps {
  readonly options: BuildOptions;
  readonly encode: Encode;
  readonly clock: Clock;
  /** Default: its own. */
  readonly known?: KnownDocuments;
  readonly deadlineMs?: number;
  /** Characters of files that may wait; default: any number. */
  readonly mostWaiting?: number;
  readonly startWorker?: (() => Worker) | undefined;
}

/** Those that another revision was built of lately, so that equal files are one document, and stay that. */
export class KnownDocuments {
  readonly ruleSets: RuleSetBuilder;
  readonly #byPath = new Map<
    string,
    { readonly text: string; readonly document: WeakRef<RuleDocument> }
  >();

  constructor({ mergeDomains }: Pick<BuildOptions, 'mergeDomains'>) {
    this.ruleSets = createRuleSetBuilder({ mergeDomains, sanitizeMetricDots: false });
  }

  find(path: string, text: string): RuleDocument | undefined {
    const known = this.#byPath.get(path);
    return known?.text === text ? known.document.deref() : undefined;
  }

  keep(files: Revision['files'], documents: readonly RuleDocument[]): void {
    for (const [path, { document }] of this.#byPath) {
      if (document.deref() === undefined) this.#byPath.delete(path);
    }
    const texts = new Map(files.map(({ path, text }) => [path, text]));
    for (const document of documents) {
      const text = texts.get(document.file);
      if (text !== undefined) {
        this.#byPath.set(document.file, { text, document: new WeakRef(document) });
      }
    }
  }
}

/** Characters of all files that take some milliseconds to build. */
const fewCharacters = 8 * 1024;

export function isLarge({ files }: Pick<Revision, 'files'>): boolean {
  let characters = 0;
  for (const { path, text } of files) {
    characters += path.length + text.length;
    if (characters > fewCharacters) return true;
  }
  return false;
}

const entry = ownPath('control-plane/snapshot/building-thread-main.ts');
/** Far above what the largest configuration takes that workers take. */
const defaultDeadlineMs = 60_000;
/** For a change that follows at once, such as the look after a write; then its memory is given back. */
const idleMs = 2_000;
/** Of the thread, beside what the process itself has: a quarter of the memory that there is, and enough for 30,000 limits. */
const threadMb = Math.min(512, Math.max(96, Math.floor(memoryMb() / 4)));
const resourceLimits = {
  maxOldGenerationSizeMb: threadMb,
  maxYoungGenerationSizeMb: Math.min(16, threadMb / 16),
  stackSizeMb: 4,
};

/** Of the container, or of the machine. */
function memoryMb(): number {
  return (
    Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()) / 1024 / 1024
  );
}

/** Too many wait for the thread: nobody knows yet what is wrong with the files. */
export class TooBusy extends Error {}

export class Building {
  readonly #deps: BuildingDeps;
  readonly #known: KnownDocuments;
  readonly #thread: ThreadOfJobs;
  readonly #nextParse = createRememberingParser();
  /** Characters of those that wait or are built. */
  #waiting = 0;

  constructor(deps: BuildingDeps) {
    const { clock, deadlineMs = defaultDeadlineMs } = deps;
    const startWorker = deps.startWorker ?? (() => new Worker(entry, { resourceLimits }));
    this.#deps = deps;
    this.#known = deps.known ?? new KnownDocuments(deps.options);
    this.#thread = new ThreadOfJobs({ clock, deadlineMs, idleMs, subject, startWorker });
  }

  /** At once where the files are few. What cannot be built has a problem that says so; rejects with a TooBusy. */
  build(revision: Files): Built | Promise<Built> {
    return isLarge(revision) ? this.#buildLarge(revision) : this.#buildNow(revision);
  }

  /** The same, without what is made of the files. */
  async findProblems(revision: Files): Promise<Pick<Received, 'ok' | 'problems'>> {
    if (isLarge(revision)) return this.#inThread(revision, new Map(), 'problems');
    const { outcome } = this.#buildNow(revision);
    return { ok: outcome.ok, problems: outcome.ok ? outcome.warnings : outcome.problems };
  }

  /** One file, not built. */
  async readDocument(text: string, path: string): Promise<ParsedDocument> {
    const files = { files: [{ path, text }], problems: [] };
    if (!isLarge(files)) return parseRuleDocument(text, path);
    const { documents, problems } = await this.#inThread(files, new Map(), 'document');
    return { document: documents[0], problems };
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #buildNow(revision: Files): Built {
    const { options, encode, clock } = this.#deps;
    const documents: RuleDocument[] = [];
    const parseText = this.#nextParse();
    const outcome = buildSnapshots(revision, options, {
      encode,
      nowMs: clock.wallMs(),
      parse(text, path) {
        const parsed = parseText(text, path);
        if (parsed.document !== undefined) documents.push(parsed.document);
        return parsed;
      },
    });
    return { outcome, documents };
  }

  async #buildLarge(revision: Files): Promise<Built> {
    const { clock } = this.#deps;
    const known = this.#known;
    const held = new Map<string, RuleDocument>();
    for (const { path, text } of revision.files) {
      const document = known.find(path, text);
      if (document !== undefined) held.set(path, document);
    }
    const nowMs = clock.wallMs();
    const needs = { known: new Set(held.keys()) };
    const { built, problems, documents } = await this.#inThread(revision, held, needs, nowMs);
    if (built === undefined) return { outcome: { ok: false, problems }, documents };
    const rules = await runInSlices(known.ruleSets.build(documents, nowMs));
    if (!rules.ok) return { outcome: rules, documents };
    known.keep(revision.files, documents);
    const whole = Object.freeze({ ...built, ruleSet: rules.ruleSet });
    return { outcome: { ok: true, built: whole, warnings: problems }, documents };
  }

  async #inThread(
    revision: Files,
    held: ReadonlyMap<string, RuleDocument>,
    needs: Needs,
    nowMs = this.#deps.clock.wallMs(),
  ): Promise<Received> {
    const { options, mostWaiting = Number.POSITIVE_INFINITY } = this.#deps;
    const characters = revision.files.reduce((sum, { text }) => sum + text.length, 0);
    if (this.#waiting > 0 && this.#waiting + characters > mostWaiting) throw new TooBusy();
    this.#waiting += characters;
    try {
      return await this.#thread.run(toJobPieces({ revision, options, nowMs, needs }), (next) =>
        receiveBuilt(next, (path) => held.get(path)),
      );
    } catch (error) {
      const reason =
        error instanceof TooMuch
          ? error.message
          : `${subject} cannot be examined: ${errorText(error)}`;
      return { ok: false, problems: [tooMuch(revision, reason)], documents: [], built: undefined };
    } finally {
      this.#waiting -= characters;
    }
  }
}

const subject = 'the configuration';

/** At the largest file, which is likely to be the reason. */
function tooMuch({ files }: Files, reason: string): Problem {
  const [first] = files;
  const largest = files.reduce((a, b) => (b.text.length > a.text.length ? b : a), first ?? none);
  const mebibytes = (largest.text.length / 1024 / 1024).toFixed(1);
  const hint = `the largest file is ${toExcerpt(largest.path)} with ${mebibytes} MiB; give it fewer rules`;
  return problemOf('error', 'too-large', largest.path, reason, hint);
}

const none = { path: '(all files)', text: '' };
