// Bounds the size of a revision's documents after their aliases are expanded: with aliases, a few kilobytes can contain
// as many rules as megabytes without.
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import type { JsonValue } from '../../../shared/rules/rule.ts';
import type { RuleDescriptor, RuleDocument } from '../../../shared/rules/rule-document.ts';
import { controlPlaneBounds } from '../../../shared/rules-file.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';

/** Maximum number of rules, limits and metadata values: 16 MiB of ordinary files have 420,000. */
export const maxParts = 500_000;
/** Maximum number of parts of one rule, which is copied and compared in one step. */
const mostReplaced = 10_000;
export const mostMetadata = 100_000;
/** As many as the files can contain without aliases. */
const maxCharacters = controlPlaneBounds.totalBytes;
/** Each rule is listed with the keys and values above it: one long value would be in the names of all rules below. */
export const mostInNames = 4 * maxCharacters;

/** The same bound as for the names that workers may request on a stream. */
const maxDomainLength = 1_024;

export class RulesSize {
  readonly #mostParts: number;
  #parts = 0;
  #characters = 0;
  #inNames = 0;
  /** A rule that is too large on its own. */
  #large: string | undefined;

  constructor(mostParts = maxParts) {
    this.#mostParts = mostParts;
  }

  /** An error if the documents so far exceed what a control plane serves. */
  add({ file, domain, descriptors }: RuleDocument): Problem | undefined {
    if (domain.length > maxDomainLength) {
      const message = `the domain has ${domain.length} characters, more than the ${maxDomainLength} that a worker can ask for`;
      return problemOf('error', 'too-large', file, message, 'give it a shorter name');
    }
    for (const descriptor of descriptors) this.#addRule(descriptor, 0);
    const excess =
      this.#parts > this.#mostParts
        ? `${this.#mostParts} rules, limits and values of metadata`
        : this.#characters > maxCharacters
          ? `${maxCharacters} characters of rules`
          : this.#inNames > mostInNames
            ? `${mostInNames} characters in keys and values, each rule's with those above it`
            : this.#large;
    if (excess === undefined) return undefined;
    const hint =
      excess === this.#large
        ? 'divide it over several rules'
        : 'use fewer aliases, fewer rules, or shorter values';
    const message = `with this file there are more than ${excess}, the most that a control plane serves`;
    return problemOf('error', 'too-large', file, message, hint);
  }

  #addRule(
    { key, value, rateLimit, furtherLimits, metadata, descriptors }: RuleDescriptor,
    above: number,
  ): void {
    const inName = above + key.length + value.length;
    this.#inNames += inName;
    this.#addText(key);
    this.#characters += value.length;
    for (const { name, replaces } of rateLimit ? [rateLimit, ...furtherLimits] : []) {
      this.#addText(name);
      for (const replaced of replaces) this.#addText(replaced.name);
      if (replaces.length > mostReplaced) {
        this.#large = `${mostReplaced} names in replaces of the rule '${toExcerpt(key)}'`;
      }
    }
    const before = this.#parts;
    if (metadata !== undefined) this.#addValue(metadata);
    if (this.#parts - before > mostMetadata) {
      this.#large = `${mostMetadata} values of metadata in the rule '${toExcerpt(key)}'`;
    }
    for (const below of descriptors) this.#addRule(below, inName);
  }

  #addValue(value: JsonValue): void {
    this.#addText(typeof value === 'string' ? value : '');
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      this.#characters += name.length;
      this.#addValue(member);
    }
  }

  #addText(text: string): void {
    this.#parts++;
    this.#characters += text.length;
  }
}
