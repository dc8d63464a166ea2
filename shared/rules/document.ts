// Reads one rules document from YAML, with every problem told at once (reference-behaviour 1.1 and
// 1.2; decisions 10 to 12). What takes several documents to see is left to rule-set.ts.
import { readDescriptors } from './descriptor.ts';
import { checkKeys } from './document-keys.ts';
import { createDocumentReporter, type DocumentReporter } from './document-reporter.ts';
import { readText } from './document-values.ts';
import type { Problem } from './problem.ts';
import type { RuleDocument } from './rule-document.ts';
import { toExcerpt } from './text-excerpt.ts';
import { isEmptyList, parseYamlTree, type TreeMap, toNoun } from './yaml-tree.ts';

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
  if (root?.kind === 'map') document = readRuleDocument(root, file, reporter);
  else if (root?.kind === 'null') reportEmptyDomain(root.offset, reporter);
  else if (root !== undefined && root.kind !== 'gap') {
    const hint = "begin the document with 'domain: <name>'";
    reporter.error(root.offset, '', `the document is a ${toNoun(root)}, not a mapping`, hint);
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
  const descriptors = readDescriptors(map, '', domain ?? '', reporter);
  if (domain && isEmptyList(map, 'descriptors') && !findings.isSuspect) {
    const message = `domain '${toExcerpt(domain)}' has no descriptors, so nothing of it is limited`;
    reporter.warning(domainOffset, 'descriptors', message);
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
  reporter.error(offset, 'domain', 'config file cannot have empty domain', hint);
}
