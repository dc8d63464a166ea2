// Parses large rules documents and resources in a thread of its own, since parsing blocks the event loop. The thread
// starts when a document needs it and ends when idle for a while. document.ts is the parser.
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../clock.ts';
import { errorText } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { ownPath } from '../../own-files.ts';
import { type Next, type Steps, ThreadOfJobs, TooMuch } from '../../thread/job-thread.ts';
import { type ParsedDocument, parseRuleDocument } from '../document/document.ts';
import { type Problem, problemOf } from '../problem/problem.ts';
import {
  type DecodeResource,
  type ParsedResource,
  parseResource,
  type ResourceName,
} from '../wire/parsed-resource.ts';
import { mayHaveAnchor } from '../yaml/anchor.ts';
import { createDocumentJoiner, type DocumentPiece } from './document-pieces.ts';

/** The thread answers with a ParsedHead, then the pieces of the document. */
export type ParsingJob =
  | { readonly text: string; readonly file: string }
  /** Of a resource: its bytes follow in messages of their own, since copying them at once would take as long as a slice may. */
  | { readonly isResource: true };

export interface ParsedHead {
  readonly problems: readonly Problem[];
  readonly hasDocument: boolean;
  /** Of a resource. */
  readonly named?: ResourceName;
  /** Why bytes are no resource. */
  readonly undecodable?: string;
}

export interface ParsingThread {
  /**
   * Parses as parseRuleDocument does, one document at a time. Where the thread fails, which is logged, the
   * document is parsed in this one. Rejects when closed meanwhile.
   */
  parse(text: string, file: string): Promise<ParsedDocument>;
  /** The same for the bytes of a resource; `shown` names it, and `decode` is for this thread. */
  parseResource(bytes: Buffer, shown: string, decode: DecodeResource): Promise<ParsedResource>;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface ParsingThreadDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly startWorker?: () => Worker;
}

/** Characters that take about two milliseconds to parse: some 200 rules. */
const fewCharacters = 16 * 1024;

/** Whether parsing this text may block others. */
export function isLargeText(text: string): boolean {
  return text.length > fewCharacters || mayHaveAnchor(text);
}

/** Some 200 rules as well. */
const fewBytes = 6 * 1024;

export function isLargeResource(bytes: Uint8Array): boolean {
  return bytes.length > fewBytes;
}

/** Far above the time that the longest legal document takes. */
const deadlineMs = 120_000;
/** A document that changed often changes again soon. */
const idleMs = 10_000;

const entry = ownPath('shared/rules/thread/parsing-thread-main.ts');

export function createParsingThread({
  log,
  clock,
  startWorker = () => new Worker(entry),
}: ParsingThreadDeps): ParsingThread {
  const thread = new ThreadOfJobs({ clock, deadlineMs, idleMs, startWorker });
  const subject = 'the document';
  let isClosed = false;

  /** What was too much, or that the thread failed, which is logged; throws where this is closed. */
  function toOutcome(error: unknown, shown: string): TooMuch | undefined {
    if (isClosed) throw error;
    if (error instanceof TooMuch) return error;
    log.warning(
      `${shown} is large and blocks others while it is read: the thread for it failed: ${errorText(error)}`,
    );
    return undefined;
  }

  return {
    async parse(text, file) {
      try {
        return await thread.run({ subject, send: [{ text, file } satisfies ParsingJob], receive });
      } catch (error) {
        const excess = toOutcome(error, file);
        return excess ? tooMuch(file, excess.message) : parseRuleDocument(text, file);
      }
    },
    async parseResource(given, shown, decode) {
      try {
        const received = await thread.run({ subject, send: toMessages(given), receive });
        const { undecodable, named = {}, ...parsed } = received;
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

const bytesAtOnce = 256 * 1024;

function* toMessages(bytes: Buffer): Generator<ParsingJob | Uint8Array> {
  yield { isResource: true };
  for (let at = 0; at < bytes.length; at += bytesAtOnce) {
    // A copy: of a part of a buffer the whole buffer would be sent.
    yield new Uint8Array(bytes.subarray(at, at + bytesAtOnce));
  }
}

type Received = ParsedDocument & Pick<ParsedHead, 'named' | 'undecodable'>;

function* receive(next: Next): Steps<Received> {
  const head = next() as ParsedHead | undefined;
  if (head === undefined) throw new Error('it sent nothing');
  const { hasDocument, ...rest } = head;
  if (!hasDocument) return { document: undefined, ...rest };
  const joiner = createDocumentJoiner();
  for (;;) {
    yield;
    const piece = next() as DocumentPiece | undefined;
    if (piece === undefined) return { document: joiner.toDocument(), ...rest };
    joiner.take(piece);
  }
}

function tooMuch(file: string, message: string): ParsedDocument {
  const hint = 'split it into several files';
  return { document: undefined, problems: [problemOf('error', 'too-large', file, message, hint)] };
}
