// Reads one rules document from YAML, with every problem told at once (behaviour: rule-documents).
// What takes several documents to see is left to rule-set.ts.

import { toExcerpt } from '../text-excerpt.ts';
import { readDescriptors } from './descriptor.ts';
import { checkKeys } from './document-keys.ts';
import { createDocumentReporter, type DocumentReporter } from './document-reporter.ts';
import { readText } from './document-values.ts';
import type { Problem } from './problem.ts';
import type { RuleDocument } from './rule-document.ts';
import { adviseOnText } from './text-advice.ts';
import { isEmptyList, type TreeMap, toNoun } from './yaml-node.ts';
import { parseYamlTree } from './yaml-tree.ts';

export interface ParsedDocument {
  /** Undefined when `problems` has an error. */
  readonly document: RuleDocument | undefined;
  readonly problems: readonly Problem[];
}

/** `file` is the name under which a person knows the text; it goes into each problem. */
export function parseRuleDocument(text: string, file: string): ParsedDocument {
  const yaml = text.startsWith('\ufeff') ? text.slice(1) : text;
  const reporter = createDocumentReporter(yaml, file);
  const root = parseYamlTree(yaml, reporter);
  let document: RuleDocument | undefined;
  const resource = root?.kind === 'map' ? findKubernetesKind(root) : undefined;
  if (root?.kind === 'map' && resource !== undefined) reportKubernetes(root, resource, reporter);
  else if (root?.kind === 'map') document = readRuleDocument(root, file, reporter);
  else if (root?.kind === 'null') reportEmptyDomain(root.offset, reporter);
  else if (root !== undefined && root.kind !== 'gap') {
    const hint = "begin the document with 'domain: <name>'";
    reporter.error(
      'document-type',
      root.offset,
      '',
      `the document is a ${toNoun(root)}, not a mapping`,
      hint,
    );
  }
  return { document: reporter.hasErrors ? undefined : document, problems: reporter.toProblems() };
}

/** What the tree says, whether it was written in YAML or came as a message; the document is of use
 * only when no error was reported. */
export function readRuleDocument(
  map: TreeMap,
  file: string,
  reporter: DocumentReporter,
): RuleDocument {
  const findings = checkKeys(map, 'document', '', reporter);
  const domain = readText(map, 'domain', '', reporter);
  const domainOffset = map.entries.get('domain')?.value.offset ?? map.offset;
  if (domain === '' && !findings.explainsAbsence('domain')) {
    reportEmptyDomain(domainOffset, reporter);
  }
  if (domain)
    adviseOnText({ name: 'domain', text: domain, offset: domainOffset, path: 'domain' }, reporter);
  const descriptors = readDescriptors(map, '', domain ?? '', reporter);
  if (domain && isEmptyList(map, 'descriptors') && !findings.isSuspect) {
    const message = `domain '${toExcerpt(domain)}' has no descriptors, so nothing of it is limited`;
    reporter.warning('no-descriptors', domainOffset, 'descriptors', message);
  }
  return Object.freeze({
    file,
    domain: domain ?? '',
    position: reporter.position(domainOffset),
    descriptors: descriptors ?? [],
  });
}

function reportEmptyDomain(offset: number, reporter: DocumentReporter): void {
  const hint = "name the domain: 'domain: <name>'";
  reporter.error('empty-domain', offset, 'domain', 'config file cannot have empty domain', hint);
}

/** Of a file that is for Kubernetes; a rules document has neither of these keys. */
function findKubernetesKind(map: TreeMap): string | undefined {
  const kind = map.entries.get('kind')?.value;
  return map.entries.has('apiVersion') && kind?.kind === 'text' ? kind.source : undefined;
}

/** One problem instead of one for each of its keys. */
function reportKubernetes(map: TreeMap, kind: string, reporter: DocumentReporter): void {
  const message = `the document is a Kubernetes ${toExcerpt(kind)}, not a rules document`;
  const data = map.entries.get('data');
  const names = data?.value.kind === 'map' ? [...data.value.entries.keys()] : [];
  const shown = names.slice(0, 3).map((name) => `'${toExcerpt(name)}'`);
  const what = shown.length === 0 ? 'each of its entries' : shown.join(', ');
  const hint =
    data === undefined
      ? "give a file that begins with 'domain: <name>'"
      : `the rules are inside data: save ${what} as a file of its own`;
  reporter.error(
    'foreign-document',
    data?.key.offset ?? map.offset,
    data ? 'data' : '',
    message,
    hint,
  );
}
