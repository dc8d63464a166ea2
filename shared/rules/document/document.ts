// Reads one rules document from YAML and reports all its problems at once (behaviour: rule-documents).
// rule-set.ts checks across documents.

import { toExcerpt } from '../../text-excerpt.ts';
import type { Problem } from '../problem/problem.ts';
import type { Reporter } from '../problem/reporter.ts';
import type { RuleDocument } from '../rule-document.ts';
import { MapReader } from '../yaml/map-reader.ts';
import { isEmptyList, type TreeMap, toNoun } from '../yaml/yaml-node.ts';
import { parseYamlTree } from '../yaml/yaml-tree.ts';
import { readDescriptors } from './descriptor.ts';
import { checkKeys, readText } from './rule-fields.ts';
import { adviseOnText } from './text-advice.ts';

export interface ParsedDocument {
  /** Undefined when `problems` has an error. */
  readonly document: RuleDocument | undefined;
  readonly problems: readonly Problem[];
}

/** `file` is the name of the text for its author; it is part of each problem. */
export function parseRuleDocument(text: string, file: string): ParsedDocument {
  const { root, reporter } = parseYamlTree(text, file);
  let document: RuleDocument | undefined;
  const resource = root?.kind === 'map' ? findKubernetesKind(root) : undefined;
  if (root?.kind === 'map' && resource !== undefined) reportKubernetes(root, resource, reporter);
  else if (root?.kind === 'map' && root.entries.has('tests') && root.entries.has('rules')) {
    const message = 'the document has tests of rules, and no rules of its own';
    const hint = 'keep tests in a folder beside the one of the rules';
    reporter.error('foreign-document', root.offset, '', message, hint);
  } else if (root?.kind === 'map') document = readRuleDocument(root, file, reporter);
  else if (root?.kind === 'null') {
    reporter.error('empty-domain', root.offset, 'domain', emptyDomain, nameDomain);
  } else if (root !== undefined && root.kind !== 'gap') {
    const message = `the document is a ${toNoun(root)}, not a mapping`;
    const hint = "begin the document with 'domain: <name>'";
    reporter.error('document-type', root.offset, '', message, hint);
  }
  return { document: reporter.hasErrors ? undefined : document, problems: reporter.toProblems() };
}

/** Reads the document of a tree, from YAML or from a message; use the result only when no error was reported. */
export function readRuleDocument(map: TreeMap, file: string, reporter: Reporter): RuleDocument {
  const fields = new MapReader(map, '', reporter);
  const findings = checkKeys(fields, 'document');
  const domain = readText(fields, 'domain');
  if (domain === '' && !findings.explainsAbsence('domain')) {
    fields.error('empty-domain', 'domain', emptyDomain, nameDomain);
  }
  adviseOnText(fields, 'domain', domain);
  readText(fields, 'name');
  const descriptors = readDescriptors(fields, domain ?? '', fields.has('rate_limit'));
  if (domain && isEmptyList(map, 'descriptors') && !findings.isSuspect) {
    const message = `domain '${toExcerpt(domain)}' has no descriptors, so its requests are not limited`;
    reporter.advise('no-descriptors', fields.offsetOf('domain'), 'descriptors', message);
  }
  const position = reporter.position(fields.offsetOf('domain'));
  return Object.freeze({ file, domain: domain ?? '', position, descriptors });
}

const emptyDomain = 'config file cannot have empty domain';
const nameDomain = "name the domain: 'domain: <name>'";

/** Keys of Kubernetes manifests; a rules document has neither. */
function findKubernetesKind(map: TreeMap): string | undefined {
  const kind = map.entries.get('kind')?.value;
  return map.entries.has('apiVersion') && kind?.kind === 'text' ? kind.source : undefined;
}

/** Reports one problem instead of one for each key. */
function reportKubernetes(map: TreeMap, kind: string, reporter: Reporter): void {
  const message = `the document is a Kubernetes ${toExcerpt(kind)}, not a rules document`;
  const data = map.entries.get('data');
  const names = data?.value.kind === 'map' ? [...data.value.entries.keys()] : [];
  const shown = names.slice(0, 3).map((name) => `'${toExcerpt(name)}'`);
  const what = shown.length === 0 ? 'each of its entries' : shown.join(', ');
  const hint =
    data === undefined
      ? "give a file that begins with 'domain: <name>'"
      : `the rules are inside data: save ${what} as a file of its own`;
  const offset = data?.key.offset ?? map.offset;
  reporter.error('foreign-document', offset, data ? 'data' : '', message, hint);
}
