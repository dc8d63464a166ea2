// Parses large rules documents and resources in a thread of its own, since parsing blocks the event loop. The thread
// starts when a document needs it and ends when idle for a while. document.ts is the parser.
import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  Worker,
} from 'node:worker_threads';
import type { Clock } from '../../clock.ts';
import { errorText } from '../../errors.ts';
import { runInSlices } from '../../in-slices.ts';
import type { Log } from '../../log.ts';
import { ownPath } from '../../own-files.ts';
import { type ParsedDocument, parseRuleDocument } from '../document/document.ts';
import { type Problem, problemOf } from '../problem/problem.ts';
import {
  type DecodeResource,
  type ParsedResource,
  parseResource,
  type ResourceName,
} from '../wire/parsed-resource.ts';
import { createDocumentJoiner, type DocumentPiece } from './document-pieces.ts';

/** Sent to the thread, one at a time. It answers 'parsed' when all pieces have been sent. */
export type ParsingJob = (
  | { readonly text: string; readonly file: string }
  /** Of a resource; shared, since copying them at once would take as long as a slice may. */
  | { readonly bytes: SharedArrayBuffer }
) & {
  /** Port for a ParsedHead, then the pieces of the document. */
  readonly pieces: MessagePort;
};

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

/** Whether parsing this text would block others. */
export function isLargeText(text: string): boolean {
  return text.length > fewCharacters;
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

/** Failures after which parsing in this thread would fail as well. */
class TooMuch extends Error {}

export function createParsingThread({
  log,
  clock,
  startWorker = () => new Worker(entry),
}: ParsingThreadDeps): ParsingThread {
  let worker: Worker | undefined;
  let isClosed = false;
  let cancelEnd = () => {};
  /** Settles the wait for the thread. */
  let fail: ((error: Error) => void) | undefined;

  function useWorker(): Worker {
    cancelEnd();
    worker ??= start();
    return worker;
  }

  function start(): Worker {
    const started = startWorker();
    // The thread does not keep an idle process alive.
    started.unref();
    started.on('error', (error) => drop(started, toFailure(error)));
    started.on('exit', (code) => drop(started, new Error(`it ended with code ${code}`)));
    return started;
  }

  function drop(gone: Worker, error: Error): void {
    if (worker !== gone) return;
    worker = undefined;
    fail?.(error);
  }

  async function end(): Promise<void> {
    cancelEnd();
    const ended = worker;
    worker = undefined;
    await ended?.terminate();
  }

  /** Resolves when the thread has sent everything. */
  async function send(job: ParsingJob): Promise<void> {
    const used = useWorker();
    const sent = Promise.withResolvers<void>();
    fail = sent.reject;
    const onMessage = () => sent.resolve();
    used.once('message', onMessage);
    const cancelDeadline = clock.after(deadlineMs, () => {
      sent.reject(new TooMuch(`the document takes more than ${deadlineMs / 1000} s to read`));
      void end();
    });
    try {
      used.postMessage(job, [job.pieces]);
      await sent.promise;
    } finally {
      used.off('message', onMessage);
      cancelDeadline();
      fail = undefined;
    }
  }

  async function parseInThread(toJob: (pieces: MessagePort) => ParsingJob): Promise<Received> {
    if (isClosed) throw new Error('closed');
    const { port1, port2 } = new MessageChannel();
    try {
      await send(toJob(port2));
      return await runInSlices(receive(port1));
    } finally {
      port1.close();
      cancelEnd();
      if (worker !== undefined) cancelEnd = clock.after(idleMs, () => void end());
    }
  }

  /** What was too much, or that the thread failed, which is logged; throws where this is closed. */
  function toOutcome(error: unknown, shown: string): TooMuch | undefined {
    if (isClosed) throw error;
    if (error instanceof TooMuch) return error;
    log.warning(
      `${shown} is large and holds up others while it is read: the thread for it failed: ${errorText(error)}`,
    );
    return undefined;
  }

  return {
    async parse(text, file) {
      try {
        return await parseInThread((pieces) => ({ text, file, pieces }));
      } catch (error) {
        const excess = toOutcome(error, file);
        return excess ? tooMuch(file, excess.message) : parseRuleDocument(text, file);
      }
    },
    async parseResource(given, shown, decode) {
      try {
        const bytes = await runInSlices(toShared(given));
        const received = await parseInThread((pieces) => ({ bytes, pieces }));
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
      fail?.(new Error('closed while a document was parsed'));
      await end();
    },
  };
}

const bytesAtOnce = 256 * 1024;

function* toShared(bytes: Buffer): Generator<void, SharedArrayBuffer> {
  const shared = new SharedArrayBuffer(bytes.length);
  const view = new Uint8Array(shared);
  for (let at = 0; at < bytes.length; at += bytesAtOnce) {
    view.set(bytes.subarray(at, at + bytesAtOnce), at);
    yield;
  }
  return shared;
}

type Received = ParsedDocument & Pick<ParsedHead, 'named' | 'undecodable'>;

/** Receives the thread's messages one at a time: `message` events would deliver all at once. */
function* receive(pieces: MessagePort): Generator<void, Received> {
  const head = receiveMessageOnPort(pieces)?.message as ParsedHead | undefined;
  if (head === undefined) throw new Error('it sent nothing');
  const { hasDocument, ...rest } = head;
  if (!hasDocument) return { document: undefined, ...rest };
  const joiner = createDocumentJoiner();
  for (;;) {
    yield;
    const piece = receiveMessageOnPort(pieces)?.message as DocumentPiece | undefined;
    if (piece === undefined) return { document: joiner.toDocument(), ...rest };
    joiner.take(piece);
  }
}

function toFailure(error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new TooMuch('the document needs more memory than there is');
  }
  return error instanceof Error ? error : new Error(String(error));
}

function tooMuch(file: string, message: string): ParsedDocument {
  const hint = 'split it into several files';
  return { document: undefined, problems: [problemOf('error', 'too-large', file, message, hint)] };
}
