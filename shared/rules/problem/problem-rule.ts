// A stable name for each kind of problem, for outputs that group problems by kind (SARIF, JSON, annotations, logs), and
// for authors who allow a warning or a note (allowance.ts). Names are in kebab-case, and never reused for another kind.

/** An error keeps rules out of force. A warning is probably a mistake; a note is information. */
export type Severity = 'error' | 'warning' | 'note';

/**
 * The severity of each kind, and its meaning in one sentence without a final full stop. A caller that cannot continue
 * reports a warning's kind as an error.
 */
const problemRules = {
  'yaml-syntax': ['error', 'The text is not valid YAML'],
  'yaml-anchor': ['error', 'An alias names no anchor, or contains itself'],
  'yaml-merge': ['error', 'A merge brings in something that is not a mapping'],
  'yaml-tag': ['error', 'A value is not of the type that its tag names'],
  'repeated-key': ['warning', 'A mapping has a key twice'],
  'further-document': ['warning', 'A file holds several documents'],
  'text-encoding': ['error', 'The text is not UTF-8, or has characters that YAML does not allow'],
  'too-large': ['error', 'A document or a directory passes a bound'],
  'foreign-document': ['error', 'A file is for Kubernetes'],
  template: ['error', 'A document is a template'],
  'document-type': ['error', 'A document is not a mapping'],
  'empty-domain': ['error', 'A document has no domain'],
  'duplicate-domain': ['error', 'Two files define one domain'],
  'duplicate-descriptor': ['error', 'Two descriptors of a level are the same'],
  'empty-descriptor-key': ['error', 'A descriptor has no key'],
  'odd-text': [
    'warning',
    'A text has quotes, spaces, letters or a placeholder that are hardly intended',
  ],
  'regular-expression': ['warning', 'A regular expression is used where only * is special'],
  'odd-value': [
    'warning',
    'A value has the form of a list or of a pattern that has no effect here',
  ],
  'unknown-key': ['error', 'A key is not known'],
  'misplaced-key': ['warning', 'A known key is used where it has no effect'],
  'list-item-type': ['error', 'An item of a list is not a mapping'],
  'invalid-unit': ['error', 'The unit of a limit is not known'],
  'unit-when-unlimited': ['error', 'An unlimited rule has a unit'],
  'missing-limit': ['error', 'A limit has no number'],
  'octal-number': ['warning', 'A number begins with 0, so YAML reads it as octal'],
  'null-value': ['warning', 'A value that is null matches any value'],
  'empty-value': ['note', 'A value that is an empty text matches any value'],
  'address-range': ['warning', 'A rule for one address names a range or a port'],
  'limit-zero': ['note', 'A limit of 0 rejects every request'],
  'limit-list': ['error', 'A list of limits cannot be used'],
  'invalid-algorithm': ['error', 'The algorithm of a limit is not known'],
  'unsupported-algorithm': ['error', 'The store that counts cannot enforce a limit'],
  'limit-key-without-effect': ['error', 'A key of a limit has no effect beside the others'],
  'invalid-lease': ['error', 'A lease is not possible'],
  'window-too-long': ['error', 'A window is longer than 100 years'],
  'invalid-replaces': ['error', 'A rule replaces nothing, or itself'],
  'unknown-replaced-name': ['warning', 'A rule replaces a name that no rule has'],
  'invalid-share-threshold': [
    'error',
    'share_threshold is beside a value that does not end in a star',
  ],
  'invalid-until': ['error', 'The end of a rule is not a time with an offset, or too far ahead'],
  'ended-rule': ['note', 'A rule has ended, and has no effect'],
  'invalid-metadata': ['error', 'Metadata cannot be sent'],
  'value-type': ['error', 'A wrong type'],
  'no-limit': ['warning', 'A descriptor limits nothing'],
  'no-descriptors': ['warning', 'A domain limits nothing'],
  'flag-without-limit': ['warning', 'A flag has no effect'],
  'unreachable-rule': ['warning', 'No request reaches a rule'],
  'freed-value': ['warning', 'A rule frees its value from limits below the rule for others'],
  'dotted-domain': ['note', 'A domain has dots, which separate labels of Prometheus'],
  'shared-counter': ['warning', 'Rules of two domains can count under one key'],
  'meeting-counters': ['note', 'Rules of one domain can count under one key'],
  'unbounded-metric': ['note', 'A statistic is made of each value that requests bring'],
  'shadow-mode-only': ['warning', 'No limit refuses a request'],
  'stops-others': ['warning', 'A rule that refuses nothing keeps other limits from being counted'],
  'memory-cache-keys': [
    'note',
    'Values of requests make counter keys that a memory cache does not accept',
  ],
  'worker-only-field': ['note', 'Other workers lack a field'],
  'node-groups': ['warning', 'Groups of workers overlap, or have no domains'],
  policy: ['warning', 'A limit breaks a policy'],
  'envoy-no-rule': ['warning', 'Envoy sends descriptors that no rule matches'],
  'envoy-cost': ['note', 'Requests of Envoy have more hits than a limit ever admits'],
  'envoy-unknown-domain': ['warning', 'Envoy asks about another domain'],
  'envoy-never-sent': ['warning', 'No filter of Envoy sends the actions'],
  'envoy-unreached-rule': ['warning', 'Envoy never asks about a rule'],
  'envoy-unasked-domain': ['warning', 'Envoy never asks about a domain'],
  'envoy-not-checked': ['warning', 'A part of an Envoy configuration is not checked'],
  'response-size': ['error', 'Rules are more than a worker accepts'],
  'large-removal': ['error', 'A revision removes most limits'],
  'taken-back': ['error', 'A revision failed its rollout'],
  'ignored-file': ['warning', 'A file or directory is not read'],
  'no-rules-file': ['warning', 'There is nothing to read'],
  'missing-folder': ['error', 'A commit does not have the folder of the rules'],
  'unreadable-file': ['error', 'A file or directory cannot be read'],
  'unreadable-resource': ['error', 'A resource of a management server cannot be read'],
  'metric-mapping': ['warning', 'A mapping of statistics cannot be used'],
  'unwritable-path': ['error', 'A change names a path that cannot be written'],
  'allow-comment': ['note', 'A comment allows a problem that does not occur, or cannot be allowed'],
  'rule-test': ['error', 'A file of rule tests cannot be run'],
  'failed-test': ['error', 'A test of rules expects another answer'],
  'program-defect': ['error', 'A defect of the program itself'],
  /** The kind of the problem that states how many errors were left out. */
  other: ['error', 'Something else'],
} as const satisfies Record<string, readonly [Severity, string]>;

export type ProblemRule = keyof typeof problemRules;

export function isProblemRule(name: string): name is ProblemRule {
  return Object.hasOwn(problemRules, name);
}

/** The kinds of warnings and notes, which can be allowed. */
export const advisoryRules: readonly ProblemRule[] = Object.keys(problemRules)
  .filter(isProblemRule)
  .filter((rule) => problemRules[rule][0] !== 'error');

export function severityOf(rule: ProblemRule): Severity {
  return problemRules[rule][0];
}

/** One sentence, without a final full stop. */
export function meaningOf(rule: ProblemRule): string {
  return problemRules[rule][1];
}
