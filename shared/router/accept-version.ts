// The version that a client asks for in its Accept header. Nothing routes on it: a method reads it.
import { parseMediaType, splitOutsideQuotes } from './request/media-type.ts';

/** The `version` parameter of the best-weighted Accept entry that has one; empty without any. */
export function acceptVersion(headers: Headers): string {
  let best = { weight: 0, version: '' };
  for (const entry of splitOutsideQuotes(headers.get('accept') ?? '', ',')) {
    const parameters = parseMediaType(entry)?.parameters;
    const version = parameters?.get('version');
    if (parameters === undefined || version === undefined) continue;
    const weight = Number(parameters.get('q') ?? '1');
    if (weight > best.weight) best = { weight, version };
  }
  return best.version;
}
