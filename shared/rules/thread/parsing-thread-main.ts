// The program of the thread that parses large documents and resources. Only parsing-thread.ts starts it.

import { serveJobs } from '../../thread/thread-side.ts';
import { type ParsedDocument, parseRuleDocument } from '../document/document.ts';
import { parseResource } from '../wire/parsed-resource.ts';
import { toDocumentPieces } from './document-pieces.ts';
import type { ParsedHead, ParsingJob } from './parsing-thread.ts';

serveJobs(async (next, send) => {
  const job = next() as ParsingJob;
  if ('text' in job) {
    sendDocument(parseRuleDocument(job.text, job.file));
    return;
  }
  const parts: Uint8Array[] = [];
  for (let part = next(); part !== undefined; part = next()) parts.push(part as Uint8Array);
  // Only a worker with a management server needs it.
  const { loadProtos } = await import('../../wire/protos.ts');
  const { deserialize } = loadProtos().rateLimitConfig;
  const parsed = parseResource(Buffer.concat(parts), deserialize);
  if (parsed.ok) sendDocument(parsed, { named: parsed.named });
  else send({ problems: [], hasDocument: false, undecodable: parsed.message } satisfies ParsedHead);

  function sendDocument(
    { document, problems }: ParsedDocument,
    more: Pick<ParsedHead, 'named'> = {},
  ): void {
    send({ problems, hasDocument: document !== undefined, ...more } satisfies ParsedHead);
    if (document !== undefined) for (const piece of toDocumentPieces(document)) send(piece);
  }
});
