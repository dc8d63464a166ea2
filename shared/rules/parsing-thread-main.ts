// The program of the thread that parses large documents. Only parsing-thread.ts starts it.
import { constants, setPriority } from 'node:os';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { parseRuleDocument } from './document.ts';
import { toDocumentPieces } from './document-pieces.ts';
import type { ParsedHead, ParsingJob } from './parsing-thread.ts';

/** So that others keep their processor where there are few. Elsewhere than on Linux it would be the whole
 * process that steps back. */
function stepBack(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A sandbox may forbid it; then it parses beside the others.
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
