// The headers of node:http as they came, looked up one by one: a request seldom needs more than three of them.
import type { RequestHeaders } from '../request/request.ts';

export class RawHeaders implements RequestHeaders {
  readonly #raw: readonly string[];

  /** Names and values in turn, as `rawHeaders` of an IncomingMessage. */
  constructor(raw: readonly string[]) {
    this.#raw = raw;
  }

  /** Values of a name that stands more than once are joined, as those of `Headers`. */
  get(name: string): string | null {
    const raw = this.#raw;
    let found: string | null = null;
    for (let at = 0; at < raw.length; at += 2) {
      const given = raw[at] as string;
      if (given.length !== name.length) continue;
      if (given !== name && given.toLowerCase() !== name) continue;
      const value = raw[at + 1] as string;
      found = found === null ? value : `${found}, ${value}`;
    }
    return found;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  *[Symbol.iterator](): Iterator<[string, string]> {
    const raw = this.#raw;
    for (let at = 0; at < raw.length; at += 2) yield [raw[at] as string, raw[at + 1] as string];
  }
}
