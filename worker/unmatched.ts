// The traffic that no rule matches: samples by domain and keys, each with the nearest rule and the reason why it does
// not match. decision/unmatched-sampler.ts takes the samples; explanations are made on request.
import { toCountText } from '../shared/count-text.ts';
import { runInSlices } from '../shared/in-slices.ts';
import { didYouMean, nearestWord } from '../shared/nearest-word.ts';
import { groupByDomain } from '../shared/rules/file-order.ts';
import {
  type LocatedRule,
  locateDocuments,
  toPositionText,
} from '../shared/rules/lookup/located-rule.ts';
import { explainingNoMatch } from '../shared/rules/lookup/nearest-rule.ts';
import { escapeText } from '../shared/rules/problem/escaped-text.ts';
import type { Entry } from '../shared/rules/rule.ts';
import type { RuleDocument } from '../shared/rules/rule-document.ts';
import { findDocumentsAt } from '../shared/rules/rule-end.ts';
import { noMatchCounter, type UnmatchedSample } from './decision/unmatched-sampler.ts';
import type { Metrics } from './metrics.ts';

/** Descriptors of one domain with the same keys. */
interface Shape {
  readonly examples: UnmatchedSample[];
  samples: number;
  lastSeconds: number;
}

interface DomainSamples {
  readonly shapes: Map<string, Shape>;
  /** Number of samples with further shapes, which are not stored. */
  left: number;
}

/** With the limits of a sample, all shapes together take at most 1 MB. */
const maxShapes = 100;
const maxShapesPerDomain = 20;
const maxExamples = 3;

export class Unmatched {
  readonly #metrics: Metrics;
  #documents: readonly RuleDocument[] = [];
  #documentsMs = 0;
  /** The domains of `documents`, made on demand: most workers never need it. */
  #knownDomains: ReadonlySet<string> | undefined;
  readonly #domains = new Map<string, DomainSamples>();
  #shapeCount = 0;
  /** Number of samples of further domains, which are not stored. */
  #left = 0;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  #domainsWithRules(): ReadonlySet<string> {
    this.#knownDomains ??= new Set(this.#documents.map(({ domain }) => domain));
    return this.#knownDomains;
  }

  *#locatingRulesOf(domain: string): Generator<void, readonly LocatedRule[] | undefined> {
    const ofDomain = this.#documents.filter((document) => document.domain === domain);
    const current = groupByDomain(yield* findDocumentsAt(ofDomain, this.#documentsMs)).get(domain);
    return current && (yield* locateDocuments(current));
  }

  #shapeOf({ domain, entries }: UnmatchedSample): Shape | undefined {
    let samples = this.#domains.get(domain);
    if (samples === undefined) {
      if (this.#shapeCount >= maxShapes) {
        this.#left++;
        return undefined;
      }
      samples = { shapes: new Map(), left: 0 };
      this.#domains.set(domain, samples);
    }
    const { shapes } = samples;
    // One sample is enough for a domain without rules.
    const name = this.#domainsWithRules().has(domain)
      ? JSON.stringify(entries.map(({ key }) => key))
      : '';
    let shape = shapes.get(name);
    if (shape === undefined) {
      if (this.#shapeCount >= maxShapes || shapes.size >= maxShapesPerDomain) {
        samples.left++;
        return undefined;
      }
      this.#shapeCount++;
      shape = { examples: [], samples: 0, lastSeconds: 0 };
      shapes.set(name, shape);
    }
    return shape;
  }

  *#describing(): Generator<void, string[]> {
    const lines: string[] = [];
    for (const [domain, samples] of this.#domains)
      lines.push(...(yield* this.#describingDomain(domain, samples)));
    if (this.#left > 0) lines.push(`and ${toCountText(this.#left, 'sample')} of other domains`);
    return lines.map(escapeText);
  }

  *#describingDomain(domain: string, { shapes, left }: DomainSamples): Generator<void, string[]> {
    yield;
    const rules = yield* this.#locatingRulesOf(domain);
    if (rules === undefined) {
      const guess = nearestWord(domain, [...this.#domainsWithRules()]);
      const hint = didYouMean(guess, '; ') ?? '';
      const last = toTime(Math.max(...[...shapes.values()].map(({ lastSeconds }) => lastSeconds)));
      return [`domain ${domain}: there are no rules for it${hint} (last seen ${last})`];
    }
    const total = toCountText(noMatchCounter(this.#metrics, domain).value, 'descriptor');
    const lines = [`domain ${domain}: ${total} since the start matched no rule`];
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
        if (nearest !== undefined)
          lines.push(`      nearest rule: ${toPositionText(nearest.rule)}`);
      }
    }
    if (left > 0) lines.push(`  and ${toCountText(left, 'sample')} with other keys`);
    return lines;
  }

  add(sample: UnmatchedSample): void {
    const shape = this.#shapeOf(sample);
    if (shape === undefined) return;
    shape.samples++;
    shape.lastSeconds = sample.atSeconds;
    const text = toText(sample.entries);
    if (shape.examples.length >= maxExamples) return;
    if (shape.examples.every(({ entries }) => toText(entries) !== text)) {
      shape.examples.push(sample);
    }
  }

  /** Drops samples taken under other rules. `atMs` is the wall time that determines which rules have ended. */
  /** `atMs`: wall time by which some of their rules have ended. */
  useRules(accepted: readonly RuleDocument[], atMs = Number.NEGATIVE_INFINITY): void {
    this.#documents = accepted;
    this.#documentsMs = atMs;
    this.#knownDomains = undefined;
    this.#domains.clear();
    this.#shapeCount = 0;
    this.#left = 0;
  }

  /** One line for `/status`. */
  summarize(): string {
    const names = [...this.#domains.keys()];
    if (names.length === 0) return 'unmatched: no descriptor since the rules were loaded';
    const known = names.filter((name) => this.#domainsWithRules().has(name));
    const parts = known.map(
      (name) => `${noMatchCounter(this.#metrics, name).value} of domain ${name}`,
    );
    const unknown = names.length - known.length;
    if (unknown > 0) parts.push(`those of ${toCountText(unknown, 'domain')} without rules`);
    return escapeText(`unmatched: ${parts.join(', ')}; /unmatched explains why`);
  }

  /** Makes the page `/unmatched`. Decisions continue meanwhile. */
  async describe(): Promise<string[]> {
    if (this.#domains.size === 0) {
      return ['since the rules were loaded, every descriptor matched a rule, or there was none'];
    }
    return runInSlices(this.#describing());
  }
}

function toText(entries: readonly Entry[]): string {
  return entries.map(({ key, value }) => `(${key}=${value})`).join('');
}

function toTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000', '');
}
