// Decodes and parses the bytes of a resource into a document without a file name, since the receiver makes names
// unique. So it can be parsed before its name is known, and in another thread.

import type { ParsedDocument } from '../../shared/rules/document/document.ts';
import { fromResource } from '../../shared/rules/wire/resource.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { toDecodingProblem } from '../../shared/wire/decoding-problem.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';

export type ParsedResource =
  /** Why the bytes are not the message. */
  | { readonly ok: false; readonly message: string }
  | ({ readonly ok: true; readonly named: ResourceName } & ParsedDocument);

/** The names in the message. */
export interface ResourceName {
  readonly name?: string | undefined;
  readonly domain?: string | undefined;
}

/** Throws on bytes that are not the message. */
export type DecodeResource = (bytes: Buffer) => RateLimitConfigMessage;

export function parseResource(bytes: Buffer, decode: DecodeResource): ParsedResource {
  let config: RateLimitConfigMessage;
  try {
    config = decode(bytes);
  } catch (error) {
    return { ok: false, message: toExcerpt(toDecodingProblem(error), 200) };
  }
  const { name, domain } = config;
  return { ok: true, named: { name, domain }, ...fromResource(config, '') };
}

const firstField = { name: 0x0a, domain: 0x12 };

/** The names at the beginning of the bytes, without decoding all of them: senders write fields in their order. */
export function peekName(bytes: Buffer): ResourceName {
  const hasEmptyName = bytes[0] === firstField.name && bytes[1] === 0;
  const [tag, low = 0, high = 0] = hasEmptyName ? bytes.subarray(2) : bytes;
  const isShort = low < 0x80;
  if (!isShort && high >= 0x80) return {};
  const start = (hasEmptyName ? 2 : 0) + (isShort ? 2 : 3);
  const text = bytes.toString('utf8', start, start + (isShort ? low : low - 0x80 + high * 0x80));
  if (tag === firstField.name) return { name: text };
  return tag === firstField.domain ? { domain: text } : {};
}

/** The document and its problems, with their name in messages. */
export function withFile({ document, problems }: ParsedDocument, file: string): ParsedDocument {
  return {
    document: document && Object.freeze({ ...document, file }),
    problems: problems.map((problem) => ({ ...problem, file })),
  };
}
