// The program of the thread that parses large documents and resources. Only parsing-thread.ts starts it.

import { type ParsedDocument, parseRuleDocument } from '../../shared/rules/document/document.ts';
import { PartDigests } from '../../shared/rules/thread/document-parts.ts';
import { toDocumentPieces } from '../../shared/rules/thread/document-pieces.ts';
import { serveJobs } from '../../shared/thread/thread-side.ts';
import { parseResource } from './parsed-resource.ts';
import type { JobPart, ParsedHead, ParsingJob } from './parsing-thread.ts';

serveJobs(async (next, send) => {
  const { file } = next() as ParsingJob;
  const known = new Set<string>();
  const bytes: Uint8Array[] = [];
  let text = '';
  for (let part = next() as JobPart | undefined; part; part = next() as JobPart | undefined) {
    if ('text' in part) text += part.text;
    else if ('bytes' in part) bytes.push(part.bytes);
    else for (const digest of part.known) known.add(digest);
  }
  if (file !== undefined) {
    sendDocument(parseRuleDocument(text, file));
    return;
  }
  // Loaded only for a worker with a management server.
  const { loadProtos } = await import('../../shared/wire/protos.ts');
  const { deserialize } = loadProtos().rateLimitConfig;
  const parsed = parseResource(Buffer.concat(bytes), deserialize);
  if (parsed.ok) sendDocument(parsed, { named: parsed.named });
  else send({ problems: [], hasDocument: false, undecodable: parsed.message } satisfies ParsedHead);

  function sendDocument(
    { document, problems }: ParsedDocument,
    more: Pick<ParsedHead, 'named'> = {},
  ): void {
    send({ problems, hasDocument: document !== undefined, ...more } satisfies ParsedHead);
    if (document === undefined) return;
    const receivers = { names: new PartDigests(), known };
    for (const piece of toDocumentPieces(document, receivers)) send(piece);
  }
});
