// Parses large rules documents and resources in a separate thread, since parsing blocks the event loop. The thread
// starts when a document needs it and ends after being idle. document.ts is the parser.
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../shared/clock.ts';
import { errorText } from '../../shared/errors.ts';
import { runInSlices } from '../../shared/in-slices.ts';
import type { Log } from '../../shared/log.ts';
import { ownPath } from '../../shared/own-files.ts';
import { type ParsedDocument, parseRuleDocument } from '../../shared/rules/document/document.ts';
import { type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { findParts, type KnownParts } from '../../shared/rules/thread/document-parts.ts';
import {
  createDocumentJoiner,
  type DocumentPiece,
} from '../../shared/rules/thread/document-pieces.ts';
import { readOrdinaryYaml } from '../../shared/rules/yaml/yaml-ordinary.ts';
import { type Next, type Steps, ThreadOfJobs, TooMuch } from '../../shared/thread/job-thread.ts';
import {
  type DecodeResource,
  type ParsedResource,
  parseResource,
  type ResourceName,
} from './parsed-resource.ts';

/** The first message of a job; JobParts follow. The thread answers with a ParsedHead, then the pieces of the document. */
export interface ParsingJob {
  /** The name of a file; undefined for a resource. */
  readonly file: string | undefined;
}

/** Sent in several messages, since copying everything at once would take as long as a slice may. */
export type JobPart =
  | { readonly text: string }
  | { readonly bytes: Uint8Array }
  /** Digests of parts that the thread need not send back. */
  | { readonly known: readonly string[] };

export interface ParsedHead {
  readonly problems: readonly Problem[];
  readonly hasDocument: boolean;
  /** The names in a resource. */
  readonly named?: ResourceName;
  /** Why the bytes are not a resource. */
  readonly undecodable?: string;
}

export interface ParsingThread {
  /**
   * Parses like parseRuleDocument, one document at a time. Descriptors that are equal to those in `before`, in the same
   * positions, are the same objects, so that a small change costs the caller little. When the thread fails, which is
   * logged, the document is parsed in the calling thread. Rejects when closed meanwhile.
   */
  parse(text: string, file: string, before?: RuleDocument): Promise<ParsedDocument>;
  /** As `parse`, for the bytes of a resource; `shown` names it, and `decode` is used in the calling thread. */
  parseResource(
    bytes: Buffer,
    shown: string,
    decode: DecodeResource,
    before?: RuleDocument,
  ): Promise<ParsedResource>;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface ParsingThreadDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly startWorker?: () => Worker;
}

/** This number of characters takes about two milliseconds to parse: some 200 rules. */
const fewCharacters = 16 * 1024;

/**
 * Whether parsing this text may block other callers. What is left to the YAML library is slow: loading the library takes
 * 40 ms or more, and aliases copy what has an anchor.
 */
export function isLargeText(text: string): boolean {
  return text.length > fewCharacters || readOrdinaryYaml(text) === undefined;
}

/** Also some 200 rules. */
const fewBytes = 6 * 1024;

export function isLargeResource(bytes: Uint8Array): boolean {
  return bytes.length > fewBytes;
}

/** Far above the time of the longest valid document. */
const deadlineMs = 120_000;
/** How long an idle thread stays: a document that changes often will soon change again. */
const idleMs = 10_000;

const entry = ownPath('worker/rules-source/parsing-thread-main.ts');

export function createParsingThread({
  log,
  clock,
  startWorker = () => new Worker(entry),
}: ParsingThreadDeps): ParsingThread {
  const thread = new ThreadOfJobs({ clock, deadlineMs, idleMs, startWorker });
  const subject = 'the document';
  let isClosed = false;

  /** The TooMuch, or undefined when the thread failed, which is logged; throws if it was closed. */
  function toOutcome(error: unknown, shown: string): TooMuch | undefined {
    if (isClosed) throw error;
    if (error instanceof TooMuch) return error;
    log.warning(
      `${shown} is large and blocks decisions while it is read, as the thread for it failed: ${errorText(error)}`,
    );
    return undefined;
  }

  async function run(
    file: string | undefined,
    content: Iterable<JobPart>,
    before: RuleDocument | undefined,
  ): Promise<Received> {
    const known = before && (await runInSlices(findParts(before)));
    const send = toMessages({ file }, [...(known?.keys() ?? [])], content);
    return thread.run({ subject, send, receive: (next) => receive(next, known) });
  }

  return {
    async parse(text, file, before) {
      try {
        return await run(file, toTextParts(text), before);
      } catch (error) {
        const excess = toOutcome(error, file);
        return excess ? tooMuch(file, excess.message) : parseRuleDocument(text, file);
      }
    },
    async parseResource(given, shown, decode, before) {
      try {
        const {
          undecodable,
          named = {},
          ...parsed
        } = await run(undefined, toByteParts(given), before);
        if (undecodable !== undefined) return { ok: false, message: undecodable };
        return { ok: true, named, ...parsed };
      } catch (error) {
        const excess = toOutcome(error, shown);
        return excess ? { ok: false, message: excess.message } : parseResource(given, decode);
      }
    },
    async close() {
      isClosed = true;
      await thread.close();
    },
  };
}

const digestsAtOnce = 1_000;
const charactersAtOnce = 256 * 1024;
const bytesAtOnce = 256 * 1024;

function* toMessages(
  job: ParsingJob,
  known: readonly string[],
  content: Iterable<JobPart>,
): Generator<ParsingJob | JobPart, void> {
  yield job;
  for (let at = 0; at < known.length; at += digestsAtOnce) {
    yield { known: known.slice(at, at + digestsAtOnce) };
  }
  yield* content;
}

function* toTextParts(text: string): Generator<JobPart, void> {
  for (let at = 0; at < text.length; at += charactersAtOnce) {
    yield { text: text.slice(at, at + charactersAtOnce) };
  }
}

function* toByteParts(bytes: Buffer): Generator<JobPart, void> {
  for (let at = 0; at < bytes.length; at += bytesAtOnce) {
    // A copy: for a part of a buffer the whole buffer would be sent.
    yield { bytes: new Uint8Array(bytes.subarray(at, at + bytesAtOnce)) };
  }
}

type Received = ParsedDocument & Pick<ParsedHead, 'named' | 'undecodable'>;

function* receive(next: Next, known: KnownParts | undefined): Steps<Received> {
  const head = next() as ParsedHead | undefined;
  if (head === undefined) throw new Error('it sent nothing');
  const { hasDocument, ...rest } = head;
  if (!hasDocument) return { document: undefined, ...rest };
  const joiner = createDocumentJoiner(known);
  for (;;) {
    yield;
    const piece = next() as DocumentPiece | undefined;
    if (piece === undefined) return { document: joiner.toDocument(), ...rest };
    joiner.receive(piece);
  }
}

function tooMuch(file: string, message: string): ParsedDocument {
  const hint = 'split it into several files';
  return { document: undefined, problems: [problemOf('error', 'too-large', file, message, hint)] };
}
