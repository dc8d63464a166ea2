// From the files of a revision to what is served: pure, and all or nothing. Which revision is in force,
// and what is said about one that is not, is left to cache.ts.

import { type ParsedDocument, parseRuleDocument } from '../../shared/rules/document.ts';
import type { Problem } from '../../shared/rules/problem.ts';
import { toResource } from '../../shared/rules/resource.ts';
import { ourFieldsKey } from '../../shared/rules/resource-fields.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { toExcerpt } from '../../shared/rules/text-excerpt.ts';
import { problemOf } from '../../shared/rules-directory.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import type { Revision } from '../store/revision.ts';
import { largestResponseBytes } from '../xds/response-body.ts';
import { matchesAny, matchesNode, type NodeGroup } from './node-group.ts';
import { nodeGroupsFile, parseNodeGroups } from './node-groups-file.ts';
import {
  createResource,
  createSnapshot,
  type NodeIdentity,
  type Resource,
  type Snapshot,
} from './snapshot.ts';

/** What a revision becomes. Immutable. */
export interface BuiltSnapshots {
  readonly ruleSet: RuleSet;
  /** Sorted. Each is one resource, of the same name, also when several files make it. */
  readonly domains: readonly string[];
  /** In the order in which nodes are matched; the last one takes all others. */
  readonly groups: readonly GroupSnapshots[];
  /** Domains with fields that only our own workers can be told (decisions 31), and the fields. */
  readonly leftOut: ReadonlyMap<string, readonly string[]>;
}

export interface GroupSnapshots {
  readonly group: NodeGroup;
  readonly domains: readonly string[];
  /** For nodes that announce themselves as ours, and for all others; the same object where it does
   * not matter. */
  readonly ours: Snapshot;
  readonly others: Snapshot;
}

export type BuildOutcome =
  | { readonly ok: true; readonly built: BuiltSnapshots; readonly warnings: readonly Problem[] }
  /** Warnings are among them. */
  | { readonly ok: false; readonly problems: readonly Problem[] };

export interface BuildOptions {
  /** Several files may add to one domain; workers get it as one. */
  readonly mergeDomains: boolean;
  /** A response may have this many bytes (decisions 32). */
  readonly maxResponseBytes: number;
}

/** Bytes that the established worker takes by default. */
export const defaultMaxResponseBytes = 4 * 1024 * 1024;

export interface BuildDeps {
  readonly encode: (message: RateLimitConfigMessage) => Buffer;
  /** Reads a file; undefined takes parseRuleDocument. For who remembers what it has read. */
  readonly parse?: (text: string, path: string) => ParsedDocument;
}

/** Of the revision only the files and their problems matter. */
export function buildSnapshots(
  { files, problems: unreadable }: Pick<Revision, 'files' | 'problems'>,
  { mergeDomains, maxResponseBytes }: BuildOptions,
  { encode, parse = parseRuleDocument }: BuildDeps,
): BuildOutcome {
  const problems: Problem[] = [...unreadable];
  const ruleFiles = files.filter(({ path }) => path !== nodeGroupsFile);
  const documents: RuleDocument[] = [];
  for (const { path, text } of ruleFiles) {
    const parsed = parse(text, path);
    problems.push(...parsed.problems);
    if (parsed.document !== undefined) documents.push(parsed.document);
  }
  const rules = buildRuleSet(documents, { mergeDomains, sanitizeMetricDots: false });
  problems.push(...(rules.ok ? rules.warnings : rules.problems));
  const merged = mergeByDomain(documents);
  const domains = [...merged.keys()].sort();
  const groupsText = files.find(({ path }) => path === nodeGroupsFile)?.text;
  const { groups, problems: groupProblems } = parseNodeGroups(groupsText, domains);
  problems.push(...groupProblems);
  if (!rules.ok || problems.some(isError)) return { ok: false, problems };

  if (ruleFiles.length === 0) {
    const message = 'no file named *.yaml or *.yml; no limit applies';
    problems.push(problemOf('warning', '(all files)', message));
  }
  const leftOut = new Map<string, readonly string[]>();
  const resources = new Map<string, ResourceVariants>();
  for (const document of merged.values()) {
    const variants = toVariants(document, encode);
    resources.set(document.domain, variants);
    if (variants.leftOut.length > 0) leftOut.set(document.domain, variants.leftOut);
  }
  problems.push(...documents.flatMap(toLeftOutWarning));
  const built = toGroups(groups, domains, resources);
  problems.push(...built.flatMap((each) => checkSize(each, maxResponseBytes)));
  if (problems.some(isError)) return { ok: false, problems };
  return {
    ok: true,
    built: Object.freeze({ ruleSet: rules.ruleSet, domains, groups: built, leftOut }),
    warnings: problems,
  };
}

/** Decisions 31. */
export function selectSnapshot(
  groups: readonly GroupSnapshots[],
  node: NodeIdentity,
): Snapshot | undefined {
  const found = selectGroup(groups, node);
  return node.metadata.has(ourFieldsKey) ? found?.ours : found?.others;
}

/** Always one of them, since the last takes all. */
export function selectGroup(
  groups: readonly GroupSnapshots[],
  node: NodeIdentity,
): GroupSnapshots | undefined {
  return groups.find(({ group }) => matchesNode(group.match, node));
}

interface ResourceVariants {
  readonly ours: Resource;
  readonly others: Resource;
  readonly leftOut: readonly string[];
}

/** One document per domain, named for it: workers that merge nothing take it, and a file's new name is
 * no news to them. */
function mergeByDomain(documents: readonly RuleDocument[]): ReadonlyMap<string, RuleDocument> {
  const merged = new Map<string, RuleDocument>();
  // Files come in the order of their paths, as the rule set takes them.
  for (const { domain, descriptors } of documents) {
    const before = merged.get(domain)?.descriptors ?? [];
    merged.set(domain, {
      file: domain,
      domain,
      position: undefined,
      descriptors: [...before, ...descriptors],
    });
  }
  return merged;
}

function toVariants(document: RuleDocument, encode: BuildDeps['encode']): ResourceVariants {
  const { message, leftOut } = toResource(document, { withOurFields: false });
  const others = createResource(document.domain, encode(message));
  const withAll = toResource(document, { withOurFields: true });
  const ours = createResource(document.domain, encode(withAll.message));
  return { ours: ours.version === others.version ? others : ours, others, leftOut };
}

/** One warning for a file, at its domain. */
function toLeftOutWarning(document: RuleDocument): Problem[] {
  const { leftOut } = toResource(document, { withOurFields: false });
  const [first] = leftOut;
  if (first === undefined) return [];
  const names = [...new Set(leftOut.map((path) => path.slice(path.lastIndexOf('.') + 1)))].sort();
  const count = leftOut.length === 1 ? 'one place' : `${leftOut.length} places`;
  const problem = problemOf(
    'warning',
    document.file,
    `${names.join(' and ')} of domain '${toExcerpt(document.domain)}' (${count}) cannot be told to workers that are not Ratelane's; they get the rules without`,
  );
  const { position } = document;
  return [
    {
      ...problem,
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
  resources: ReadonlyMap<string, ResourceVariants>,
): GroupSnapshots[] {
  const known = new Map<string, Pick<GroupSnapshots, 'ours' | 'others'>>();
  return groups.map((group) => {
    const chosen = domains.filter((domain) => matchesAny(group.domains, domain));
    const key = JSON.stringify(chosen);
    let snapshots = known.get(key);
    if (snapshots === undefined) {
      const variants = chosen.flatMap((domain) => resources.get(domain) ?? []);
      const others = createSnapshot(variants.map((each) => each.others));
      const ours = createSnapshot(variants.map((each) => each.ours));
      snapshots = { ours: ours.version === others.version ? others : ours, others };
      known.set(key, snapshots);
    }
    return Object.freeze({ group, domains: chosen, ...snapshots });
  });
}

function checkSize({ group, ours, others }: GroupSnapshots, maxBytes: number): Problem[] {
  const bytes = Math.max(largestResponseBytes(ours), largestResponseBytes(others));
  if (bytes <= maxBytes) return [];
  const message = `the rules for node group '${toExcerpt(group.name)}' are a response of ${bytes} bytes, more than the ${maxBytes} that its workers take`;
  const hint = `give the group fewer domains in ${nodeGroupsFile}, or raise the limit here and at the workers (XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES)`;
  return [
    problemOf('error', group.offset === undefined ? '(all files)' : nodeGroupsFile, message, hint),
  ];
}

function isError({ severity }: Problem): boolean {
  return severity === 'error';
}
