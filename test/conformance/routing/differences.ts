// The differences between an answer and what a case expects, human-readable; everything is compared.
import { isDeepStrictEqual } from 'node:util';
import type { Expectation } from './case-file.ts';
import type { Call } from './controller-tree.ts';
import type { WireResponse } from './mounts.ts';

export function differences(
  expected: Expectation,
  response: WireResponse,
  calls: readonly Call[],
): readonly string[] {
  const found: string[] = [];
  const compare = (what: string, actual: unknown, wanted: unknown) => {
    if (!isDeepStrictEqual(actual, wanted)) {
      found.push(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(wanted)}`);
    }
  };
  const { headers, body } = response;
  const text = body.toString();
  const contentType = headers.get('content-type') ?? '';
  compare('status', response.status, expected.status);
  if (expected.handler !== undefined) {
    compare(
      'handlers',
      calls.map(({ handler }) => handler),
      [expected.handler],
    );
  }
  if ('bound' in expected) compare('bound', plain(calls[0]?.bound), plain(expected.bound));
  if (expected.media_type !== undefined)
    compare('media type', contentType.split(';')[0]?.trim(), expected.media_type);
  if (expected.no_charset === true) compare('charset', /charset/i.test(contentType), false);
  if ('json' in expected) compare('json', parse(text), expected.json);
  if (expected.text !== undefined) compare('text', text, expected.text);
  if (expected.base64 !== undefined) compare('base64', body.toString('base64'), expected.base64);
  if (expected.empty === true) compare('body', text, '');
  for (const [name, value] of Object.entries(expected.headers ?? {}))
    compare(name, headers.get(name), value);
  if (expected.allow !== undefined)
    compare('allow', headers.get('allow')?.split(/, */).sort(), [...expected.allow].sort());
  for (const part of expected.body_includes ?? []) {
    if (!text.includes(part)) found.push(`the body lacks ${part}`);
  }
  for (const part of expected.body_excludes ?? []) {
    if (text.includes(part)) found.push(`the body has ${part}`);
  }
  return found;
}

/** Normalized through JSON: no prototypes, no undefined. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return `not JSON: ${text}`;
  }
}
