// The program of the thread that parses large documents and resources. Only parsing-thread.ts starts it.
import { constants, setPriority } from 'node:os';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { type ParsedDocument, parseRuleDocument } from '../document/document.ts';
import { parseResource } from '../wire/parsed-resource.ts';
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

async function parse({ pieces, ...job }: ParsingJob): Promise<void> {
  if ('bytes' in job) {
    // Only a worker with a management server needs it.
    const { loadProtos } = await import('../../wire/protos.ts');
    const { deserialize } = loadProtos().rateLimitConfig;
    const parsed = parseResource(Buffer.from(job.bytes), deserialize);
    if (parsed.ok) sendDocument(pieces, parsed, { named: parsed.named });
    else send(pieces, { problems: [], hasDocument: false, undecodable: parsed.message });
  } else sendDocument(pieces, parseRuleDocument(job.text, job.file));
  parentPort?.postMessage('parsed');
}

function sendDocument(
  pieces: MessagePort,
  { document, problems }: ParsedDocument,
  more: Pick<ParsedHead, 'named'> = {},
): void {
  send(pieces, { problems, hasDocument: document !== undefined, ...more });
  if (document !== undefined) for (const piece of toDocumentPieces(document)) send(pieces, piece);
}

function send(port: MessagePort, message: ParsedHead | object): void {
  port.postMessage(message);
}

stepBack();
parentPort?.on('message', (job: ParsingJob) => void parse(job));
