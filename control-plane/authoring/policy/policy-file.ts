// Reads the policy, which limits what rules may contain and who may change them, and reports all its problems at once.

import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { maxCount } from '../../../shared/rules/rule-keys.ts';
import { type Unit, units } from '../../../shared/rules/unit.ts';
import { type MapReader, readMap, reportKind } from '../../../shared/rules/yaml/map-reader.ts';
import { parseYamlTree } from '../../../shared/rules/yaml/yaml-tree.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { reasonAgainstGlob } from '../glob.ts';
import { policyKeysAt } from './policy-keys.ts';

/** The file at the root of the store; policy-keys.ts has its keys. */
export const policyFile = 'policy.yaml';

export interface Policy {
  /** Patterns of the users who can change the file; undefined: all users. */
  readonly owners: readonly string[] | undefined;
  readonly policies: readonly DomainPolicy[];
}

export interface DomainPolicy {
  /** Patterns of domain names. */
  readonly domains: readonly string[];
  /** Patterns of users; undefined: all users. */
  readonly owners: readonly string[] | undefined;
  /** `name`, or `metadata.KEY`. */
  readonly require: readonly string[];
  readonly bounds: readonly Bound[];
  /** Above 1; undefined: no limit. */
  readonly largestFactor: number | undefined;
  readonly allowsUnlimited: boolean;
  /** Its line in the file, for messages. */
  readonly line: number | undefined;
}

export interface Bound {
  /** Undefined: no limit. */
  readonly unit: Unit | undefined;
  readonly least: number;
  readonly most: number;
}

export interface ParsedPolicy {
  readonly policy: Policy;
  /** If these include an error, the policy cannot be used. */
  readonly problems: readonly Problem[];
}

const noPolicy: Policy = { owners: undefined, policies: [] };

/** `text` is the content of the file; undefined when it does not exist. */
export function parsePolicy(text: string | undefined, file = policyFile): ParsedPolicy {
  if (text === undefined) return { policy: noPolicy, problems: [] };
  const { root, reporter } = parseYamlTree(text, file);
  const fields = root && readMap(root, '', 'the document', reporter);
  const policy = fields ? readPolicy(fields) : noPolicy;
  return { policy, problems: reporter.toProblems() };
}

function readPolicy(fields: MapReader): Policy {
  const meant = fields.refuseOthers(policyKeysAt('file'));
  if (!fields.has('policies') && !meant.has('policies')) {
    const hint = "begin the list with 'policies:'";
    fields.errorOfAll('policy', 'there are no policies', hint);
  }
  return {
    owners: readTexts(fields, 'owners'),
    policies: fields.maps('policies').map(readDomainPolicy),
  };
}

function readDomainPolicy(fields: MapReader): DomainPolicy {
  const { reporter, node } = fields;
  const meant = fields.refuseOthers(policyKeysAt('policy'));
  const domains = readTexts(fields, 'domains');
  if (domains === undefined && !meant.has('domains')) {
    fields.errorOfAll('policy', 'the policy has no domains', 'for all of them: \'domains: "*"\'');
  }
  return {
    domains: domains ?? [],
    owners: readTexts(fields, 'owners'),
    require: readRequired(fields),
    bounds: fields.maps('bounds').map(readBound),
    largestFactor: readFactor(fields),
    allowsUnlimited: !fields.has('unlimited') || fields.flag('unlimited') !== false,
    line: reporter.position(node.offset)?.line,
  };
}

/** One text or a list of them; undefined when there is no such key. */
function readTexts(fields: MapReader, name: string): readonly string[] | undefined {
  const given = fields.given(name);
  if (given === undefined) return undefined;
  const items = given.node.kind === 'list' ? fields.items(name) : [given];
  if (items.length === 0) fields.error('policy', name, `${name} is an empty list`);
  return items.flatMap(({ node, path }) => {
    const reason = 'source' in node ? reasonAgainstGlob(node.source) : undefined;
    if (reason !== undefined) {
      fields.reporter.error('too-large', node.offset, path, `${name}: ${reason}`);
      return [];
    }
    if ('source' in node && node.source !== '') return [node.source];
    reportKind({ node, path }, name, 'text', fields.reporter);
    return [];
  });
}

function readRequired(fields: MapReader): readonly string[] {
  return fields.items('require').flatMap(({ node, path }) => {
    const text = 'source' in node ? node.source : '';
    if (/^(?:name|metadata\..+)$/.test(text)) return [text];
    reportKind({ node, path }, 'require', 'name, or metadata.KEY', fields.reporter);
    return [];
  });
}

function readBound(fields: MapReader): Bound {
  fields.refuseOthers(policyKeysAt('bound'));
  const least = fields.count('least', maxCount);
  const most = fields.count('most', maxCount);
  if (!fields.has('least') && !fields.has('most')) {
    fields.errorOfAll('policy', 'the bound has neither least nor most');
  }
  if (least !== undefined && most !== undefined && least > most) {
    fields.error('policy', 'least', `least is ${least}, more than most, which is ${most}`);
  }
  return { unit: readUnit(fields), least: least ?? 0, most: most ?? maxCount };
}

function readUnit(fields: MapReader): Unit | undefined {
  const text = fields.text('unit')?.toLowerCase();
  if (text === undefined || text === '') return undefined;
  const unit = units.find((one) => one === text);
  if (unit === undefined) fields.word('unit', units);
  return unit;
}

function readFactor(fields: MapReader): number | undefined {
  const factor = fields.number('largest_factor');
  if (factor === undefined || factor > 1) return factor;
  const message = `largest_factor is ${toExcerpt(String(factor))}, not above 1`;
  fields.error('policy', 'largest_factor', message);
  return undefined;
}
