// The keys of the policy file, one row each. The rows define which keys are allowed where, the table in the documents,
// and the JSON Schema for editors. policy-file.ts reads the values.

import { maxCount } from '../../../shared/rules/rule-keys.ts';
import { units } from '../../../shared/rules/unit.ts';
import { createDocumentKeys, type JsonSchema, type SchemaRow } from '../schema/document-schema.ts';

export type PolicySection = 'file' | 'policy' | 'bound';

const text: JsonSchema = { type: ['string', 'integer', 'boolean'] };
const texts: JsonSchema = { anyOf: [text, { type: 'array', minItems: 1, items: text }] };

export const policyKeys = [
  {
    name: 'owners',
    sections: ['file'],
    type: 'other',
    schema: texts,
    meaning: 'who may change this file; without it, anyone',
  },
  {
    name: 'policies',
    sections: ['file'],
    type: 'list',
    holds: 'policy',
    isRequired: true,
    items: [1, 1_000],
    meaning: 'the policies; a domain keeps all whose `domains` it matches; required',
  },
  {
    name: 'domains',
    sections: ['policy'],
    type: 'other',
    isRequired: true,
    schema: texts,
    meaning:
      'for which domains: a pattern or a list of them, with `*` for any characters; required',
  },
  {
    name: 'owners',
    sections: ['policy'],
    type: 'other',
    schema: texts,
    meaning:
      'who may change them: patterns for the name of a token, or for the name or address of the author of a commit; without it, anyone',
  },
  {
    name: 'require',
    sections: ['policy'],
    type: 'other',
    schema: {
      type: 'array',
      items: { type: 'string', pattern: '^(name|metadata[.].+)$' },
    },
    meaning: 'what each limit has to have: `name`, or `metadata.KEY`',
  },
  {
    name: 'bounds',
    sections: ['policy'],
    type: 'list',
    holds: 'bound',
    meaning: 'the smallest and the largest number of requests for a unit',
  },
  {
    name: 'unit',
    sections: ['bound'],
    type: 'text',
    words: units,
    meaning: 'for limits that are counted in this unit; without it, in any',
  },
  {
    name: 'least',
    sections: ['bound'],
    type: 'count',
    min: 0,
    max: maxCount,
    meaning: 'the fewest requests for one unit',
  },
  {
    name: 'most',
    sections: ['bound'],
    type: 'count',
    min: 0,
    max: maxCount,
    meaning: 'the most requests for one unit, and the largest `burst`',
  },
  {
    name: 'largest_factor',
    sections: ['policy'],
    type: 'other',
    schema: { type: 'number', exclusiveMinimum: 1 },
    meaning: 'by how much one revision may raise or lower a limit, such as `10`',
  },
  {
    name: 'unlimited',
    sections: ['policy'],
    type: 'flag',
    meaning: '`false` forbids rules that are `unlimited`; default `true`',
  },
] as const satisfies readonly SchemaRow<PolicySection>[];

export const { keysAt: policyKeysAt, formatSchema: formatPolicySchema } =
  createDocumentKeys<PolicySection>({
    title: 'Policies for rate limit rules',
    rows: policyKeys,
    root: 'file',
  });
