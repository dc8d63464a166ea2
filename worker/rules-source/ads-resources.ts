// Applies the resources of one response: good ones replace earlier versions, a bad one keeps its last good
// version in force, and missing ones are removed. ads-client.ts runs the exchange.

import { createHash } from 'node:crypto';
import { isError, type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import { Reporter } from '../../shared/rules/problem/reporter.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { RuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import type { AnyMessage } from '../../shared/wire/discovery-messages.ts';
import {
  type DecodeResource,
  type ParsedResource,
  parseResource,
  peekName,
  type ResourceName,
  withFile,
} from './parsed-resource.ts';

export interface GoodResource {
  readonly document: RuleDocument;
  readonly warnings: readonly Problem[];
  /** The hash of its bytes. */
  readonly digest: string;
  /** The name in the message, before it was made unique. */
  readonly named: ResourceName;
}

/** The resources by their human-readable names. */
export type ResourcesInForce = ReadonlyMap<string, GoodResource>;

export interface Intake {
  /** The resources that are in force from now on. */
  readonly inForce: ResourcesInForce;
  /** Names in `inForce` whose resources stay unchanged because their replacements are invalid. */
  readonly retained: readonly string[];
  /** Undefined when there are problems and nothing has changed. */
  readonly ruleSet: RuleSet | undefined;
  /** Warnings about everything in force. */
  readonly warnings: readonly Problem[];
  /** Errors; empty when the whole response is in force. */
  readonly problems: readonly Problem[];
  /** Equal for responses with the same resources, in any order. */
  readonly digest: string;
}

export interface IntakeDeps {
  readonly decode: DecodeResource;
  readonly builder: RuleSetBuilder;
}

/** A resource of a response. */
interface DigestedResource {
  readonly any: AnyMessage;
  /** Hash of its type and its bytes. */
  readonly digest: string;
}

/** How much is processed between two yields: each takes well below a millisecond. */
const bytesAtOnce = 256 * 1024;
const resourcesAtOnce = 500;

function* digestResources(resources: readonly AnyMessage[]): Generator<void, DigestedResource[]> {
  const digested: DigestedResource[] = [];
  for (const any of resources) {
    const { type_url: typeUrl = '', value = Buffer.alloc(0) } = any;
    const hash = createHash('sha256').update(`${typeUrl}\0`);
    for (let at = 0; at < value.length; at += bytesAtOnce) {
      hash.update(value.subarray(at, at + bytesAtOnce));
      yield;
    }
    digested.push({ any, digest: hash.digest('base64') });
    yield;
  }
  return digested;
}

/** Independent of the order, since some servers change it each time. */
function* digestOf(resources: readonly DigestedResource[]): Generator<void, string> {
  const sums = new Uint32Array(8);
  for (const { digest } of resources) {
    yield;
    const bytes = Buffer.from(digest, 'base64');
    for (const [index, sum] of sums.entries()) sums[index] = sum + bytes.readUInt32LE(4 * index);
  }
  return `${resources.length} ${sums.join()}`;
}

/** The resources after the preparations for `applyResources`. */
export interface PreparedResources {
  readonly digested: readonly DigestedResource[];
  /** Resources that were parsed in another thread, by their messages. */
  readonly parsed: ReadonlyMap<AnyMessage, ParsedResource>;
}

export function* prepareResources(
  resources: readonly AnyMessage[],
): Generator<void, PreparedResources> {
  return { digested: yield* digestResources(resources), parsed: new Map() };
}

/** Resolving conflicts can uncover others; a response with more layers of conflicts than this is refused completely. */
const maxRounds = 8;

/**
 * `nowMs` is the wall time that determines which rules have ended. Yields so that the thread can serve other callers. A
 * resource with the same bytes as before is not decoded, and a domain with unchanged resources is not built again.
 */
export function* applyResources(
  deps: IntakeDeps,
  resources: readonly AnyMessage[],
  before: ResourcesInForce,
  nowMs = Date.now(),
  given?: PreparedResources,
): Generator<void, Intake> {
  const prepared = given ?? (yield* prepareResources(resources));
  const digest = yield* digestOf(prepared.digested);
  const { candidates, retained, problems } = yield* readResources(deps, prepared, before);
  for (let round = 0; round < maxRounds; round++) {
    const documents = Array.from(candidates.values(), ({ document }) => document);
    const built = yield* deps.builder.build(documents, nowMs);
    if (!built.ok) {
      problems.push(...built.problems.filter(isError));
      for (const name of namesInConflict(candidates, built.problems.filter(isError))) {
        const last = before.get(name);
        if (last === undefined) candidates.delete(name);
        else if (candidates.get(name) !== last) candidates.set(name, last);
        retained.add(name);
      }
      continue;
    }
    if (problems.length > 0 && candidates.size === 0) break;
    const isNews = problems.length === 0 || !isSame(candidates, before);
    return {
      inForce: candidates,
      retained: [...retained].filter((name) => candidates.has(name)),
      ruleSet: isNews ? built.ruleSet : undefined,
      warnings: yield* collectWarnings(candidates, built.warnings),
      problems,
      digest,
    };
  }
  return {
    inForce: before,
    retained: [...before.keys()],
    ruleSet: undefined,
    warnings: [],
    problems,
    digest,
  };
}

/** At most the first hundred of each kind: thousands of resources may each have some, and each is logged. */
function* collectWarnings(
  resources: ResourcesInForce,
  ofAll: readonly Problem[],
): Generator<void, readonly Problem[]> {
  const reporter = new Reporter('(all resources)');
  for (const { warnings } of resources.values()) {
    if (warnings.length === 0) continue;
    yield;
    reporter.addAll(warnings);
  }
  reporter.addAll(ofAll);
  return reporter.toProblems();
}

/** Reads each resource by itself, and retains earlier versions of invalid ones. */
function* readResources(
  { decode }: IntakeDeps,
  { digested, parsed: parsedBefore }: PreparedResources,
  before: ResourcesInForce,
): Generator<
  void,
  { candidates: Map<string, GoodResource>; retained: Set<string>; problems: Problem[] }
> {
  const knownBytes = new Map<string, GoodResource>();
  for (const each of before.values()) {
    if (knownBytes.size % resourcesAtOnce === resourcesAtOnce - 1) yield;
    knownBytes.set(each.digest, each);
  }
  const problems: Problem[] = [];
  const candidates = new Map<string, GoodResource>();
  const retained = new Set<string>();
  const toName = createNames();
  const named = new Set<string>();
  const domains = new Set<string>();
  /** Whether there is an invalid resource that presumably replaces another. */
  let hasStranger = false;

  for (const [index, { any, digest }] of digested.entries()) {
    yield;
    const known = knownBytes.get(digest);
    const parsed = known ?? parseAny(any, parsedBefore, decode);
    if ('ok' in parsed && !parsed.ok) {
      problems.push(toProblem(`resource ${index + 1} of the response`, parsed.message));
      hasStranger = true;
      continue;
    }
    const name = toName(parsed.named);
    const last = before.get(name);
    named.add(name);
    if (last?.digest === digest) {
      candidates.set(name, last);
      domains.add(last.document.domain);
      continue;
    }
    const { named: ofMessage } = parsed;
    const { document, problems: found } = withFile(
      'ok' in parsed ? parsed : { document: parsed.document, problems: parsed.warnings },
      name,
    );
    if (document !== undefined) {
      candidates.set(name, { document, warnings: found, digest, named: ofMessage });
      domains.add(document.domain);
      continue;
    }
    problems.push(...found.filter(isError));
    if (last === undefined) hasStranger = true;
    else {
      candidates.set(name, last);
      retained.add(name);
    }
  }
  if (hasStranger) {
    // A missing resource may have been renamed to the unidentified one, unless another took over its domain.
    for (const [name, last] of before) {
      if (named.has(name) || domains.has(last.document.domain)) continue;
      candidates.set(name, last);
      retained.add(name);
    }
  }
  return { candidates, retained, problems };
}

/** All resources of a domain with a conflict: it is unknown which of them is wrong. */
function namesInConflict(
  candidates: ReadonlyMap<string, GoodResource>,
  problems: readonly Problem[],
): string[] {
  const domains = new Set(problems.map(({ file }) => candidates.get(file)?.document.domain));
  return [...candidates]
    .filter(([, { document }]) => domains.has(document.domain))
    .map(([name]) => name);
}

function isSame(a: ResourcesInForce, b: ResourcesInForce): boolean {
  return a.size === b.size && [...a].every(([name, resource]) => b.get(name) === resource);
}

const typeName = 'ratelimit.config.ratelimit.v3.RateLimitConfig';

/** The part before the last slash is the location of the type's description, which is ignored. */
function isOfType({ type_url: typeUrl = '' }: AnyMessage): boolean {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1) === typeName;
}

function parseAny(
  any: AnyMessage,
  parsedBefore: PreparedResources['parsed'],
  decode: DecodeResource,
): ParsedResource {
  const { type_url: typeUrl = '', value = Buffer.alloc(0) } = any;
  if (!isOfType(any)) {
    const message = `mismatched message type: got '${toExcerpt(typeUrl, 200)}', want '${typeName}'`;
    return { ok: false, message };
  }
  const parsed = parsedBefore.get(any) ?? parseResource(value, decode);
  if (parsed.ok) return parsed;
  return { ok: false, message: `cannot be read as ${typeName} (${parsed.message})` };
}

/**
 * Makes unique names of resources, stable from one response to the next. The reference ignores names, so a server may
 * omit or repeat them.
 */
function createNames(): (config: ResourceName) => string {
  const used = new Set<string>();
  const numbers = new Map<string, number>();
  return (named) => {
    const wanted = toShownName(named);
    let unique = wanted;
    for (let number = numbers.get(wanted) ?? 2; used.has(unique); number++) {
      unique = `${wanted} (${number})`;
      numbers.set(wanted, number + 1);
    }
    used.add(unique);
    return unique;
  };
}

/** The resource in force that the one with these bytes presumably replaces. */
export function findReplaced(bytes: Buffer, inForce: ResourcesInForce): RuleDocument | undefined {
  return inForce.get(toShownName(peekName(bytes)))?.document;
}

function toShownName({ name = '', domain = '' }: ResourceName): string {
  return name === '' ? `(no name, domain ${toExcerpt(domain)})` : toExcerpt(name, 200);
}

function toProblem(file: string, message: string): Problem {
  return problemOf('error', 'unreadable-resource', file, message);
}
