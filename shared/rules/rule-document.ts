// A rules document as a plain immutable tree, independent of its source format.

import type { LimitShape } from './limit-shape.ts';
import type { Position } from './problem/reporter.ts';
import type { JsonObject } from './rule.ts';
import type { DescriptorFlags } from './rule-keys.ts';

export interface RuleDocument {
  /** The file's path, or the resource's name. */
  readonly file: string;
  readonly domain: string;
  /** Position of the domain; undefined, here and below, when the source has no lines. */
  readonly position: Position | undefined;
  readonly descriptors: readonly RuleDescriptor[];
}

/** The fields are explained in the guide to writing rules, README.md. */
export interface RuleDescriptor extends DescriptorFlags {
  readonly key: string;
  /** '' when the rule is for every value. */
  readonly value: string;
  /** The only limit, or the first one of a list. */
  readonly rateLimit: RateLimitBlock | undefined;
  /** The limits of a list after its first. */
  readonly furtherLimits: readonly RateLimitBlock[];
  /** Wall time in milliseconds at which the rule ends, with all below it; undefined without an end. */
  readonly untilMs: number | undefined;
  /** Deeply frozen. */
  readonly metadata: JsonObject | undefined;
  readonly descriptors: readonly RuleDescriptor[];
  readonly position: Position | undefined;
}

export interface RateLimitBlock extends LimitShape {
  readonly unlimited: boolean;
  /** '' when the rule has no name. */
  readonly name: string;
  readonly replaces: readonly Replacement[];
}

export interface Replacement {
  readonly name: string;
  readonly position: Position | undefined;
}

/** The name of a rule on its level: the key, with `_` and the value if there is one. */
export function toCompositeKey(key: string, value: string): string {
  return value === '' ? key : `${key}_${value}`;
}

/**
 * The unique name of a descriptor on its level. A rule with an end may share key and value with a permanent one, which
 * it replaces until then, so the two have different names.
 */
export function toUniqueName(composite: string, isEnding: boolean): string {
  return `${isEnding ? 'until' : 'always'} ${composite}`;
}

export interface WalkedDescriptor {
  readonly document: RuleDocument;
  readonly descriptor: RuleDescriptor;
  /** A path such as `descriptors[0].descriptors[2]`. */
  readonly toPath: () => string;
}

/** All descriptors of the documents, parents before their children. */
export function* walkDescriptors(
  documents: readonly RuleDocument[],
): Generator<WalkedDescriptor, void> {
  for (const document of documents) {
    yield* walkList(document, document.descriptors, () => 'descriptors');
  }
}

function* walkList(
  document: RuleDocument,
  descriptors: readonly RuleDescriptor[],
  toListPath: () => string,
): Generator<WalkedDescriptor, void> {
  for (const [index, descriptor] of descriptors.entries()) {
    const toPath = () => `${toListPath()}[${index}]`;
    yield { document, descriptor, toPath };
    if (descriptor.descriptors.length > 0) {
      yield* walkList(document, descriptor.descriptors, () => `${toPath()}.descriptors`);
    }
  }
}
