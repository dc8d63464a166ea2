// Descriptors that matched no rule, from the samples that workers report: each descriptor once, the newest ones of each
// link.
import type { Entry } from '../../../shared/rules/rule.ts';
import type { UnmatchedMessage } from '../../../shared/wire/fleet-messages.ts';
import { toTime } from '../api-shape.ts';
import { SharedTable } from './shared-table.ts';

export interface UnmatchedSample {
  readonly domain: string;
  readonly entries: readonly Entry[];
  /** Number of identical samples. */
  readonly samples: number;
  /** When the newest sample was reported. */
  readonly lastAt: string;
}

/** A sample that may be reported again. */
interface KnownSample extends UnmatchedSample {
  samples: number;
  lastAt: string;
}

const maxSamples = 200;
const maxPerReport = 20;
const maxEntries = 32;
const maxTextLength = 128;

export class UnmatchedSamples {
  readonly #known = new SharedTable<KnownSample>(maxSamples);

  /** Adds the samples of one report of a link, which is untrusted. */
  add(link: object, reported: readonly UnmatchedMessage[], atMs: number): void {
    const known = this.#known;
    const lastAt = toTime(atMs);
    for (const given of reported.slice(0, maxPerReport)) {
      const domain = cut(given.domain);
      const entries = given.entries
        .slice(0, maxEntries)
        .map(({ key, value }) => ({ key: cut(key), value: cut(value) }));
      const text = JSON.stringify([domain, entries]);
      const before = known.find(link, text);
      if (before !== undefined) {
        before.samples++;
        before.lastAt = lastAt;
        known.touch(text);
        continue;
      }
      const sample = { domain, entries, samples: 1, lastAt };
      if (known.add(link, text, sample)) continue;
      known.removeOldest(link);
      known.add(link, text, sample);
    }
  }

  /** Handles a closed link. */
  leave(link: object): void {
    this.#known.leave(link);
  }

  /** The newest sample of each link, then the second newest of each, and so on. */
  read(): UnmatchedSample[] {
    return this.#known.inTurn().map((sample) => ({ ...sample }));
  }
}

function cut(text: string): string {
  return text.slice(0, maxTextLength);
}
