// Generates the JSON Schema of a rules document, for editors, from the rows of rule-keys.ts. It finds less than
// `check`, which also compares keys and files.

import { type RuleKey, ruleKeys, type Section } from '../../../shared/rules/rule-keys.ts';
import { createDocumentKeys } from './document-schema.ts';

const rows: readonly RuleKey[] = ruleKeys;

/** Returns the text of rules.schema.json, which `schema` prints. */
export const { formatSchema: formatRuleSchema } = createDocumentKeys<Section>({
  title: 'Rate limit rules of one domain',
  rows,
  root: 'document',
  refine: (section) =>
    section === 'rate_limit'
      ? {
          if: { required: ['unlimited'], properties: { unlimited: { const: true } } },
          // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
          then: { not: { required: ['unit'] } },
          else: {
            required: ['unit', 'requests_per_unit'],
            properties: {
              unit: { not: { enum: [null, ''] } },
              requests_per_unit: { type: 'integer' },
            },
          },
        }
      : {},
});
