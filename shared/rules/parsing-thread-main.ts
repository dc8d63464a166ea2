// The program of the thread that parses large documents. Only parsing-thread.ts starts it.
import { type MessagePort, parentPort } from 'node:worker_threads';
import { parseRuleDocument } from './document.ts';
import { toDocumentPieces } from './document-pieces.ts';
import type { ParsedHead, ParsingJob } from './parsing-thread.ts';

function parse({ text, file, pieces }: ParsingJob): void {
  const { document, problems } = parseRuleDocument(text, file);
  send(pieces, { problems, hasDocument: document !== undefined });
  if (document !== undefined) for (const piece of toDocumentPieces(document)) send(pieces, piece);
  parentPort?.postMessage('parsed');
}

function send(port: MessagePort, message: ParsedHead | object): void {
  port.postMessage(message);
}

parentPort?.on('message', parse);
