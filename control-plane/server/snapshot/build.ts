// Builds what is served from the files of a revision: pure, and all or nothing. cache.ts decides which
// revision is in force.
import { runAtOnce } from '../../../shared/in-slices.ts';
import { type ParsedDocument, parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { groupByDomain } from '../../../shared/rules/file-order.ts';
import { applyAllowances } from '../../../shared/rules/problem/allowance.ts';
import { isError, type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import type { JsonValue } from '../../../shared/rules/rule.ts';
import type { RuleDescriptor, RuleDocument } from '../../../shared/rules/rule-document.ts';
import { documentsAt } from '../../../shared/rules/rule-end.ts';
import { toResource } from '../../../shared/rules/wire/resource.ts';
import { controlPlaneBounds } from '../../../shared/rules-file.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { RateLimitConfigMessage } from '../../../shared/wire/rate-limit-config-message.ts';
import { advisingOnRules } from '../../authoring/advice/rule-advice.ts';
import { type CheckedRules, checkRules } from '../../authoring/checked-rules.ts';
import { type Policy, parsePolicy, policyFile } from '../../authoring/policy/policy-file.ts';
import type { Revision, StoredFile } from '../store/revision.ts';
import { matchesAny, type NodeGroup, nodeGroupsFile, parseNodeGroups } from './node-groups.ts';
import {
  createResource,
  createSnapshot,
  largestResponseBytes,
  type Resource,
  type Snapshot,
  toDigest,
  toVariants,
  type Variants,
} from './snapshot.ts';

/** The result of building a revision. Immutable. */
export interface BuiltSnapshots {
  readonly ruleSet: CheckedRules;
  /** The documents that the rule set was made from. */
  readonly documents: readonly RuleDocument[];
  /** Sorted. Each is one resource of the same name, even when made of several files. */
  readonly domains: readonly string[];
  /** In the order in which nodes are matched; the last group matches all other nodes. */
  readonly groups: readonly GroupSnapshots[];
  /** Equal if every node gets the same. */
  readonly content: string;
  /** Domains with fields that only our own workers get (behaviour: fields-of-our-own), and the fields. */
  readonly leftOut: ReadonlyMap<string, readonly string[]>;
  readonly policy: Policy;
  /** The text of its file; undefined without one. */
  readonly policyText: string | undefined;
}

export interface GroupSnapshots extends Variants<Snapshot> {
  readonly group: NodeGroup;
  readonly domains: readonly string[];
}

export type BuildOutcome =
  | {
      readonly ok: true;
      readonly built: BuiltSnapshots;
      readonly warnings: readonly Problem[];
      /** Advice for authors of rules; empty unless it is requested. */
      readonly advice: readonly Problem[];
    }
  /** Warnings and notes included. */
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** The problems with the advice. */
export function listProblems(outcome: BuildOutcome): readonly Problem[] {
  return outcome.ok ? [...outcome.warnings, ...outcome.advice] : outcome.problems;
}

export interface BuildOptions {
  /** Several files may add to one domain; workers get it as one. */
  readonly mergeDomains: boolean;
  /** The maximum size of a response in bytes (behaviour: response-size). */
  readonly maxResponseBytes: number;
  /** Also finds valid rules that are hardly ever intended, and comments that allow problems which do not occur. */
  readonly advises?: boolean;
  /** Whether revisions reach workers in steps; undefined if unknown. */
  readonly rollsOut?: boolean;
}

/** The default limit of the reference worker, in bytes. */
export const defaultMaxResponseBytes = 4 * 1024 * 1024;

export type Encode = (message: RateLimitConfigMessage) => Buffer;

export interface BuildDeps {
  readonly encode: Encode;
  /** Wall time in milliseconds, which decides whether rules have ended; default: now. */
  readonly nowMs?: number;
  /** Reads a file; default: parseRuleDocument. For callers that cache documents (createRememberingParser). */
  readonly parse?: Parse;
  /** Returns equal objects of other builds, so that values derived from a snapshot are reused; default: none. */
  readonly findSnapshot?: (version: string) => Snapshot | undefined;
  /** Called between long steps. If it throws, the build ends with that error. */
  readonly check?: () => void;
}

export type Parse = (text: string, path: string) => ParsedDocument;

/** Only the files of the revision and their problems are relevant. */
export function buildSnapshots(
  { files, problems: unreadable }: Pick<Revision, 'files' | 'problems'>,
  { mergeDomains, maxResponseBytes, rollsOut, advises = false }: BuildOptions,
  deps: BuildDeps,
): BuildOutcome {
  const { encode, nowMs = Date.now(), parse = parseRuleDocument, findSnapshot } = deps;
  const { check = () => {} } = deps;
  const problems: Problem[] = [...unreadable];
  const ruleFiles = files.filter(({ path }) => path !== nodeGroupsFile && path !== policyFile);
  const documents: RuleDocument[] = [];
  const size = new RulesSize();
  for (const { path, text } of ruleFiles) {
    const parsed = parse(text, path);
    problems.push(...parsed.problems);
    if (parsed.document === undefined) continue;
    const excess = size.add(parsed.document);
    // The remaining checks would cost as much again.
    if (excess !== undefined) return refuse([...problems, excess], files);
    documents.push(parsed.document);
  }
  check();
  const rules = checkRules(documents, { mergeDomains }, nowMs);
  problems.push(...(rules.ok ? rules.warnings : rules.problems));
  const byDomain = groupByDomain(documents);
  const domains = [...byDomain.keys()].sort();
  const groupsText = files.find(({ path }) => path === nodeGroupsFile)?.text;
  const { groups, problems: groupProblems } = parseNodeGroups(groupsText, domains);
  problems.push(...groupProblems);
  const policyText = files.find(({ path }) => path === policyFile)?.text;
  const { policy, problems: policyProblems } = parsePolicy(policyText);
  problems.push(...policyProblems);
  const stepped = groups.find(({ rollout }) => rollout !== undefined);
  if (stepped !== undefined && rollsOut === false) {
    const message = `group '${toExcerpt(stepped.name)}' has steps of a rollout, but revisions reach all workers at once here`;
    const hint = 'start the control plane with --rollout';
    problems.push(problemOf('warning', 'node-groups', nodeGroupsFile, message, hint));
  }
  if (problems.some(isError) || !rules.ok) return refuse(problems, files);

  if (ruleFiles.length === 0) {
    const message = 'no file named *.yaml or *.yml; no limit applies';
    problems.push(problemOf('warning', 'no-rules-file', '(all files)', message));
  }
  const leftOut = new Map<string, readonly string[]>();
  const resources = new Map<string, DomainResource>();
  for (const [domain, group] of byDomain) {
    check();
    const resource = tryToEncode(domain, group, encode);
    if (resource instanceof Error) {
      const message = `domain '${toExcerpt(domain)}' cannot be sent to workers: ${resource.message}`;
      const hint = 'metadata may be nested about 40 levels deep';
      problems.push(
        problemOf('error', 'response-size', group[0]?.file ?? '(all files)', message, hint),
      );
      continue;
    }
    resources.set(domain, resource);
    problems.push(...resource.notes);
    if (resource.leftOut.length > 0) leftOut.set(domain, resource.leftOut);
  }
  const built = toGroups(groups, domains, resources, findSnapshot);
  problems.push(...built.flatMap((each) => checkSize(each, maxResponseBytes)));
  if (problems.some(isError)) return refuse(problems, files);
  check();
  const advice = new Set(
    advises ? runAtOnce(advisingOnRules(documents, nowMs), check).filter(isNews) : [],
  );
  const reported = applyAllowances([...problems, ...advice], files);
  return {
    ok: true,
    built: Object.freeze({
      ruleSet: rules.rules,
      documents,
      domains,
      groups: built,
      content: toContent(built),
      leftOut,
      policy,
      policyText,
    }),
    warnings: reported.problems.filter((problem) => !advice.has(problem)),
    advice: advises
      ? [...reported.problems.filter((each) => advice.has(each)), ...reported.idle]
      : [],
  };
}

function refuse(problems: readonly Problem[], files: readonly StoredFile[]): BuildOutcome {
  return { ok: false, problems: applyAllowances(problems, files).problems };
}

/** Whether the problem is new: the domains' resources already report what other workers do not get. */
function isNews({ rule }: Problem): boolean {
  return rule !== 'worker-only-field';
}

/** The encoding has its own limits, such as the depth of nesting. */
function tryToEncode(
  domain: string,
  documents: readonly RuleDocument[],
  encode: Encode,
): DomainResource | Error {
  try {
    return toDomainResource(domain, documents, encode);
  } catch (error) {
    return error as Error;
  }
}

/** One domain as the resource for workers, in its variants (behaviour: fields-of-our-own). */
export interface DomainResource extends Variants<Resource> {
  /** The fields that `standard` lacks, such as `descriptors[0].share_threshold`. */
  readonly leftOut: readonly string[];
  /** One for each document with such fields. */
  readonly notes: readonly Problem[];
}

/** Combines the documents of one domain into one resource, named after the domain: this works for workers that do not
 * merge, and renaming a file changes nothing. */
export function toDomainResource(
  domain: string,
  documents: readonly RuleDocument[],
  encode: Encode,
): DomainResource {
  const merged: RuleDocument = {
    file: domain,
    domain,
    position: undefined,
    descriptors: documents.flatMap(({ descriptors }) => descriptors),
  };
  const { leftOut } = toResource(merged, { withExtensions: false });
  // A worker that cannot end a rule by itself would apply it until it reaches a control plane again.
  const [endless = merged] = documentsAt([merged], Number.POSITIVE_INFINITY);
  const encodeFor = (document: RuleDocument, withExtensions: boolean) =>
    createResource(domain, encode(toResource(document, { withExtensions }).message));
  const standard = encodeFor(endless, false);
  const full = encodeFor(endless, true);
  const lasting = full.version === standard.version ? standard : full;
  const extended = endless === merged ? lasting : encodeFor(merged, true);
  const notes = leftOut.length === 0 ? [] : documents.flatMap(toNote);
  return { extended, lasting, standard, leftOut, notes };
}

/** The note is reported at the document's domain. */
function toNote(document: RuleDocument): Problem[] {
  const { leftOut } = toResource(document, { withExtensions: false });
  const [first] = leftOut;
  if (first === undefined) return [];
  const names = [...new Set(leftOut.map((path) => path.slice(path.lastIndexOf('.') + 1)))].sort();
  const endNote = names.includes('until') ? ' them, and no rule with until' : '';
  const count = leftOut.length === 1 ? 'one place' : `${leftOut.length} places`;
  const message = `${names.join(' and ')} of domain '${toExcerpt(document.domain)}' (${count}) cannot be sent to workers that are not Ratelane's; they get the rules without${endNote}`;
  const { position } = document;
  return [
    {
      ...problemOf('note', 'worker-only-field', document.file, message),
      path: first,
      line: position?.line,
      column: position?.column,
      sourceLine: position?.sourceLine,
    },
  ];
}

/** Groups with the same domains share their snapshots. */
function toGroups(
  groups: readonly NodeGroup[],
  domains: readonly string[],
  resources: ReadonlyMap<string, DomainResource>,
  findSnapshot: BuildDeps['findSnapshot'],
): GroupSnapshots[] {
  const byVersion = new Map<string, Snapshot>();
  const byDomains = new Map<string, Variants<Snapshot>>();
  return groups.map((group) => {
    const chosen = domains.filter((domain) => matchesAny(group.domains, domain));
    const key = JSON.stringify(chosen);
    const snapshots =
      byDomains.get(key) ??
      toVariants((variant) => {
        const made = createSnapshot(
          chosen.flatMap((domain) => resources.get(domain)?.[variant] ?? []),
        );
        const same = byVersion.get(made.version) ?? findSnapshot?.(made.version) ?? made;
        byVersion.set(made.version, same);
        return same;
      });
    byDomains.set(key, snapshots);
    return Object.freeze({ group, domains: chosen, ...snapshots });
  });
}

/** Equal if and only if every node gets the same. */
function toContent(groups: readonly GroupSnapshots[]): string {
  // Conditions matter too: a node may change groups while no group changes its content.
  const shown = JSON.stringify(
    groups.map(({ group: { match }, extended, standard }) => [
      match.id?.map(({ text }) => text),
      match.cluster?.map(({ text }) => text),
      [...match.metadata].map(([name, patterns]) => [name, patterns.map(({ text }) => text)]),
      extended.version,
      standard.version,
    ]),
  );
  return toDigest(shown);
}

function checkSize({ group, extended, standard }: GroupSnapshots, maxBytes: number): Problem[] {
  const bytes = Math.max(largestResponseBytes(extended), largestResponseBytes(standard));
  if (bytes <= maxBytes) return [];
  const message = `the rules for node group '${toExcerpt(group.name)}' are a response of ${bytes} bytes, more than the ${maxBytes} that its workers take`;
  const hint = `give the group fewer domains in ${nodeGroupsFile}, or raise the limit here and at the workers (XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES)`;
  return [
    problemOf(
      'error',
      'response-size',
      group.offset === undefined ? '(all files)' : nodeGroupsFile,
      message,
      hint,
    ),
  ];
}

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

/** Bounds the size of a revision's documents after their aliases are expanded: with aliases, a few kilobytes can contain
 * as many rules as megabytes without. */
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
