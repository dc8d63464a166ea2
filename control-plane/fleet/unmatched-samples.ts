// Descriptors that found no rule, as the workers report samples of them: each once, the last ones.
import type { Entry } from '../../shared/rules/rule.ts';
import type { UnmatchedMessage } from '../../shared/wire/fleet-messages.ts';

export interface UnmatchedSample {
  readonly domain: string;
  readonly entries: readonly Entry[];
  /** How many samples were the same. */
  readonly samples: number;
  /** Wall time of the last one. */
  readonly lastMs: number;
}

export interface UnmatchedSamples {
  /** From one report; untrusted. */
  take(reported: readonly UnmatchedMessage[], atMs: number): void;
  /** The last reported first. */
  read(): UnmatchedSample[];
}

const maxSamples = 200;
const maxPerReport = 20;
const maxEntries = 32;
const maxTextLength = 128;

export function createUnmatchedSamples(): UnmatchedSamples {
  /** In the order of their last report. */
  const known = new Map<string, UnmatchedSample>();
  const cut = (text: string) => text.slice(0, maxTextLength);

  return {
    take(reported, atMs) {
      for (const given of reported.slice(0, maxPerReport)) {
        const domain = cut(given.domain);
        const entries = given.entries
          .slice(0, maxEntries)
          .map(({ key, value }) => ({ key: cut(key), value: cut(value) }));
        const text = JSON.stringify([domain, entries]);
        const samples = (known.get(text)?.samples ?? 0) + 1;
        known.delete(text);
        known.set(text, { domain, entries, samples, lastMs: atMs });
        const [oldest] = known.keys();
        if (known.size > maxSamples && oldest !== undefined) known.delete(oldest);
      }
    },
    read: () => [...known.values()].reverse(),
  };
}
