// Parses a pasted descriptor: `customer=ada, path=/x`, `shop: customer=ada`, `(customer=ada)(path=/x)` as in logs, or
// the JSON of a request.
import type { Pair } from './format.ts';

export interface Pasted {
  readonly domain: string | undefined;
  readonly entries: readonly Pair[];
}

/** Undefined if it is not a descriptor. */
export function parsePasted(text: string): Pasted | undefined {
  return text.startsWith('{') ? fromJson(text) : fromText(text);
}

function fromText(text: string): Pasted | undefined {
  const [, domain, rest = ''] = /^(?:([^\s=(),:]+):\s+)?(.*)$/s.exec(text) ?? [];
  const parts = rest.startsWith('(')
    ? [...rest.matchAll(/\(([^()]*)\)/g)].map(([, part = '']) => part)
    : rest.split(/[,\n]/);
  const entries = parts
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const at = part.indexOf('=');
      return at < 1
        ? undefined
        : { key: part.slice(0, at).trim(), value: part.slice(at + 1).trim() };
    });
  const complete = entries.filter((entry) => entry !== undefined);
  return complete.length === 0 || complete.length < entries.length
    ? undefined
    : { domain, entries: complete };
}

/** The first descriptor of a request. */
function fromJson(text: string): Pasted | undefined {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { domain, descriptors, entries = firstOf(descriptors) } = given as Record<string, unknown>;
  if (!Array.isArray(entries) || entries.length === 0) return undefined;
  const pairs = entries.map((entry) => ({
    key: String(entry?.key ?? ''),
    value: String(entry?.value ?? ''),
  }));
  if (pairs.some(({ key }) => key === '')) return undefined;
  return {
    domain: typeof domain === 'string' && domain !== '' ? domain : undefined,
    entries: pairs,
  };
}

function firstOf(descriptors: unknown): unknown {
  return Array.isArray(descriptors) ? descriptors[0]?.entries : undefined;
}
