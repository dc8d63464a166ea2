// The traffic that no rule matches: samples by domain and keys, each with the nearest rule and
// why it does not match. decision/unmatched-sampler.ts takes the samples; explanations are made on
// request.
import { toCountText } from '../shared/count-text.ts';
import { runInSlices } from '../shared/in-slices.ts';
import { didYouMean, nearestWord } from '../shared/nearest-word.ts';
import { groupByDomain } from '../shared/rules/file-order.ts';
import { explainingNoMatch } from '../shared/rules/lookup/nearest-rule.ts';
import {
  type PlacedRule,
  placeDocuments,
  toPlaceText,
} from '../shared/rules/lookup/placed-rule.ts';
import { escapeText } from '../shared/rules/problem/escaped-text.ts';
import type { Entry } from '../shared/rules/rule.ts';
import type { RuleDocument } from '../shared/rules/rule-document.ts';
import { findDocumentsAt } from '../shared/rules/rule-end.ts';
import { noMatchCounter, type UnmatchedSample } from './decision/unmatched-sampler.ts';
import type { Metrics } from './metrics.ts';

export interface Unmatched {
  take(sample: UnmatchedSample): void;
  /** Drops samples taken under other rules. */
  /** `atMs`: wall time by which some of their rules have ended. */
  useRules(documents: readonly RuleDocument[], atMs?: number): void;
  /** One line for `/status`. */
  summarize(): string;
  /** The page `/unmatched`. Decisions continue meanwhile. */
  describe(): Promise<string[]>;
}

/** Descriptors of one domain with the same keys. */
interface Shape {
  readonly examples: UnmatchedSample[];
  samples: number;
  lastSeconds: number;
}

interface DomainSamples {
  readonly shapes: Map<string, Shape>;
  /** Number of samples with further shapes, which are not kept. */
  left: number;
}

/** With the limits of a sample, all shapes together take 1 MB at most. */
const maxShapes = 100;
const maxShapesPerDomain = 20;
const maxExamples = 3;

export function createUnmatched(metrics: Metrics): Unmatched {
  let documents: readonly RuleDocument[] = [];
  let documentsMs = 0;
  /** The domains of `documents`, made on demand: most workers never need it. */
  let knownDomains: ReadonlySet<string> | undefined;
  const domains = new Map<string, DomainSamples>();
  let shapeCount = 0;
  /** Number of samples of domains that are not kept. */
  let left = 0;

  function domainsWithRules(): ReadonlySet<string> {
    knownDomains ??= new Set(documents.map(({ domain }) => domain));
    return knownDomains;
  }

  function* placingRulesOf(domain: string): Generator<void, readonly PlacedRule[] | undefined> {
    const ofDomain = documents.filter((document) => document.domain === domain);
    const current = groupByDomain(yield* findDocumentsAt(ofDomain, documentsMs)).get(domain);
    return current && (yield* placeDocuments(current));
  }

  function shapeOf({ domain, entries }: UnmatchedSample): Shape | undefined {
    let samples = domains.get(domain);
    if (samples === undefined) {
      if (shapeCount >= maxShapes) {
        left++;
        return undefined;
      }
      samples = { shapes: new Map(), left: 0 };
      domains.set(domain, samples);
    }
    const { shapes } = samples;
    // For a domain without rules, one sample is enough.
    const name = domainsWithRules().has(domain)
      ? JSON.stringify(entries.map(({ key }) => key))
      : '';
    let shape = shapes.get(name);
    if (shape === undefined) {
      if (shapeCount >= maxShapes || shapes.size >= maxShapesPerDomain) {
        samples.left++;
        return undefined;
      }
      shapeCount++;
      shape = { examples: [], samples: 0, lastSeconds: 0 };
      shapes.set(name, shape);
    }
    return shape;
  }

  function* describing(): Generator<void, string[]> {
    const lines: string[] = [];
    for (const [domain, samples] of domains)
      lines.push(...(yield* describingDomain(domain, samples)));
    if (left > 0) lines.push(`and ${toCountText(left, 'sample')} of other domains`);
    return lines.map(escapeText);
  }

  function* describingDomain(
    domain: string,
    { shapes, left }: DomainSamples,
  ): Generator<void, string[]> {
    yield;
    const rules = yield* placingRulesOf(domain);
    if (rules === undefined) {
      const guess = nearestWord(domain, [...domainsWithRules()]);
      const hint = didYouMean(guess, '; ') ?? '';
      const last = toTime(Math.max(...[...shapes.values()].map(({ lastSeconds }) => lastSeconds)));
      return [`domain ${domain}: there are no rules for it${hint} (last seen ${last})`];
    }
    const total = toCountText(noMatchCounter(metrics, domain).value, 'descriptor');
    const lines = [`domain ${domain}: ${total} since the start found no rule`];
    for (const { examples, samples, lastSeconds } of shapes.values()) {
      const keys = examples[0]?.entries.map(({ key }) => `(${key})`).join('') ?? '';
      lines.push(
        `  ${keys}: sampled ${toCountText(samples, 'time')}, last at ${toTime(lastSeconds)}`,
      );
      for (const { entries, isCut } of examples) {
        yield;
        const explained = yield* explainingNoMatch(domain, rules, entries);
        const cut = isCut ? ' (shortened)' : '';
        lines.push(`    ${toText(entries)}${cut}`);
        if (explained === undefined) continue;
        const { nearest, reason, hint } = explained;
        lines.push(`      ${reason}${hint === undefined ? '' : `; ${hint}`}`);
        if (nearest !== undefined) lines.push(`      nearest rule: ${toPlaceText(nearest.rule)}`);
      }
    }
    if (left > 0) lines.push(`  and ${toCountText(left, 'sample')} with other keys`);
    return lines;
  }

  return {
    take(sample) {
      const shape = shapeOf(sample);
      if (shape === undefined) return;
      shape.samples++;
      shape.lastSeconds = sample.atSeconds;
      const text = toText(sample.entries);
      if (shape.examples.length >= maxExamples) return;
      if (shape.examples.every(({ entries }) => toText(entries) !== text)) {
        shape.examples.push(sample);
      }
    },
    useRules(accepted, atMs = Number.NEGATIVE_INFINITY) {
      documents = accepted;
      documentsMs = atMs;
      knownDomains = undefined;
      domains.clear();
      shapeCount = 0;
      left = 0;
    },
    summarize() {
      const names = [...domains.keys()];
      if (names.length === 0) return 'unmatched: no descriptor since the rules came';
      const known = names.filter((name) => domainsWithRules().has(name));
      const parts = known.map((name) => `${noMatchCounter(metrics, name).value} of domain ${name}`);
      const unknown = names.length - known.length;
      if (unknown > 0) parts.push(`those of ${toCountText(unknown, 'domain')} without rules`);
      return escapeText(`unmatched: ${parts.join(', ')}; /unmatched explains why`);
    },
    async describe() {
      if (domains.size === 0) {
        return ['every descriptor since the rules came found a rule, or there was none'];
      }
      return runInSlices(describing());
    },
  };
}

function toText(entries: readonly Entry[]): string {
  return entries.map(({ key, value }) => `(${key}=${value})`).join('');
}

function toTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000', '');
}
