// A stable name for each kind of problem, for outputs that sort or silence problems by kind (SARIF,
// JSON). A problem itself carries only its text, so the kind is told from the words it begins with.
import type { Problem } from './problem.ts';

export interface ProblemRule {
  /** Kebab-case; never reused for another kind. */
  readonly id: string;
  /** One sentence without a final full stop. */
  readonly summary: string;
}

interface Row extends ProblemRule {
  readonly pattern: RegExp;
}

const rows: readonly Row[] = [
  row('yaml-syntax', /^not valid YAML: /, 'The text is not valid YAML'),
  row('yaml-anchor', /^(unknown anchor|anchor) '/, 'An alias names no anchor, or contains itself'),
  row('yaml-merge', /^'<<' can only merge/, 'A merge brings in something that is no mapping'),
  row(
    'yaml-tag',
    /^'.*' is not of the type !!\w+$/s,
    'A value is not of the type that its tag names',
  ),
  row('repeated-key', /^key '.*' is repeated/s, 'A mapping has a key twice'),
  row('further-document', /^only the first document of a file/, 'A file holds several documents'),
  row(
    'text-encoding',
    /^(the text is not valid UTF-8|the text has half of|the file is not UTF-8|the character U\+)/,
    'The text is not UTF-8, or has characters that YAML does not allow',
  ),
  row(
    'too-large',
    /^(the document is longer|the document has more than|aliases stand for|nested more than|directories are nested|more than \d+ |\d+ bytes, more)/,
    'A document or a directory passes a bound',
  ),
  row('foreign-document', /^the document is a Kubernetes/, 'A file is for Kubernetes'),
  row('document-type', /^the document is ('|a |empty)/, 'A document is no mapping'),
  row('empty-domain', /^config file cannot have empty domain/, 'A document has no domain'),
  row('duplicate-domain', /^duplicate domain /, 'Two files define one domain'),
  row('duplicate-descriptor', /^duplicate descriptor /, 'Two descriptors of a level are the same'),
  row('empty-descriptor-key', /^descriptor has empty key/, 'A descriptor has no key'),
  row(
    'odd-text',
    /^(domain|key|value) has (the |an? |white space)/,
    'A text has quotes, spaces or letters that are hardly meant',
  ),
  row(
    'regular-expression',
    /^value has signs of a regular expression/,
    'A regular expression stands where only * is special',
  ),
  row('unknown-key', /^(unknown key|unknown field|key is not of type)/, 'A key is not known'),
  row('misplaced-key', /^'.* no effect here$/s, 'A known key stands where it has no effect'),
  row('list-item-type', /^list of type other than map/, 'An item of a list is no mapping'),
  row('invalid-unit', /^invalid rate limit unit/, 'The unit of a limit is not known'),
  row('unit-when-unlimited', /^should not specify rate limit unit/, 'An unlimited rule has a unit'),
  row('missing-limit', /^requests_per_unit is missing/, 'A limit does not say how much it allows'),
  row('limit-zero', /^requests_per_unit is 0,/, 'A limit of 0 rejects every request'),
  row(
    'invalid-replaces',
    /^(should not have an empty replaces|replaces should not contain)/,
    'A rule replaces nothing, or itself',
  ),
  row('unknown-replaced-name', /^replaces names '/, 'A rule replaces a name that no rule has'),
  row(
    'invalid-share-threshold',
    /^share_threshold can only be used/,
    'share_threshold stands beside a value that does not end in a star',
  ),
  row('invalid-metadata', /^(error parsing metadata|metadata key )/, 'Metadata cannot be carried'),
  row(
    'value-type',
    /^(\S+ is neither text nor a whole number$|(?:a )?\S+ is ('.*|a .*|empty), not )/s,
    'A wrong type',
  ),
  row('no-limit', /^this descriptor has neither rate_limit/, 'A descriptor limits nothing'),
  row('no-descriptors', /^domain '.*' has no descriptors/s, 'A domain limits nothing'),
  row('flag-without-limit', /^\w+ has no effect on a descriptor/, 'A flag has no effect'),
  row('unreachable-rule', /^this rule can never match/, 'No request reaches a rule'),
  row(
    'shared-counter',
    /^this rule of domain '.*' and one of domain '/s,
    'Rules of two domains can count under one key',
  ),
  row(
    'unbounded-metric',
    /^(detailed_metric|value_to_metric) makes a statistic/,
    'A statistic is made of each value that requests bring',
  ),
  row('shadow-mode-only', /^every limit is in shadow mode/, 'No limit refuses anybody'),
  row('worker-only-field', /^this document needs Ratelane workers/, 'Other workers miss a field'),
  row(
    'node-groups',
    /^('.*' matches no domain|no node gets to group|duplicate group name|there are no groups|the group has no|the name '.*' is taken)/s,
    'Groups of workers are not told apart, or are without domains',
  ),
  row('envoy-no-rule', /^no rule of domain '/, 'Envoy asks about what no rule takes'),
  row(
    'envoy-unknown-domain',
    /^there are no rules for domain '/,
    'Envoy asks about another domain',
  ),
  row('envoy-never-sent', /^these actions are never sent/, 'No filter of Envoy sends the actions'),
  row('envoy-unreached-rule', /^no Envoy action can come to/, 'Envoy never asks about a rule'),
  row('envoy-unasked-domain', /^no Envoy configuration asks/, 'Envoy never asks about a domain'),
  row('envoy-not-checked', /^not checked: /, 'A part of an Envoy configuration is not looked at'),
  row('response-size', /^the rules for node group/, 'Rules are more than a worker takes'),
  row('large-removal', /^held back: /, 'A revision takes most limits away'),
  row('ignored-file', /; (it is ignored|nothing is read)$/, 'A file or directory is not read'),
  row('no-rules-file', /^no file named /, 'There is nothing to read'),
  row(
    'unreadable-file',
    /^(no permission|it does not exist|it is |it grew|its symbolic links|cannot be read)/,
    'A file or directory cannot be read',
  ),
];

/** For what says how many problems were left out, and for what is not in the table. */
export const otherRule: ProblemRule = { id: 'other', summary: 'Something else' };

function row(id: string, pattern: RegExp, summary: string): Row {
  return { id, summary, pattern };
}

export function toProblemRule({ message }: Problem): ProblemRule {
  return rows.find(({ pattern }) => pattern.test(message)) ?? otherRule;
}
