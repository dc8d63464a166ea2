// The program of the thread that parses large documents. Only parsing-thread.ts starts it.
import { constants, setPriority } from 'node:os';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { parseRuleDocument } from '../document/document.ts';
import { toDocumentPieces } from './document-pieces.ts';
import type { ParsedHead, ParsingJob } from './parsing-thread.ts';

/** Lower priority, so that decisions keep the processor where there are few. Outside Linux this would slow
 * down the whole process. */
function stepBack(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A sandbox may forbid it; parsing then runs with normal priority.
  }
}

function parse({ text, file, pieces }: ParsingJob): void {
  const { document, problems } = parseRuleDocument(text, file);
  send(pieces, { problems, hasDocument: document !== undefined });
  if (document !== undefined) for (const piece of toDocumentPieces(document)) send(pieces, piece);
  parentPort?.postMessage('parsed');
}

function send(port: MessagePort, message: ParsedHead | object): void {
  port.postMessage(message);
}

stepBack();
parentPort?.on('message', parse);
