// The keys of the node groups file, one row each. They define which keys are valid and where, and the JSON Schema for
// editors. node-groups.ts reads their values.
import {
  createDocumentKeys,
  type JsonSchema,
  type SchemaRow,
} from '../../authoring/schema/document-schema.ts';

/** Each group has a snapshot of its own, encoded in memory. */
export const maxGroups = 200;

type NodeGroupsSection = 'file' | 'group' | 'match';

const text: JsonSchema = { type: ['string', 'number', 'boolean'] };
const texts: JsonSchema = { anyOf: [text, { type: 'array', items: text }] };

const nodeGroupsKeys = [
  {
    name: 'groups',
    sections: ['file'],
    type: 'list',
    holds: 'group',
    isRequired: true,
    items: [0, maxGroups],
    meaning: 'the groups; a node belongs to the first one that it matches; required',
  },
  {
    name: 'name',
    sections: ['group'],
    type: 'other',
    schema: { ...text, not: { const: 'default' } },
    isRequired: true,
    meaning: 'unique; `default` stands for the nodes that match no group; required',
  },
  {
    name: 'match',
    sections: ['group'],
    type: 'map',
    holds: 'match',
    meaning: 'which nodes: all that is given has to match; without it, every node',
  },
  {
    name: 'domains',
    sections: ['group'],
    type: 'other',
    schema: texts,
    isRequired: true,
    meaning:
      'what they get: a pattern or a list of them, with `*` for any characters; `[]` for nothing; required',
  },
  {
    name: 'rollout',
    sections: ['group'],
    type: 'other',
    schema: text,
    meaning: 'its steps, such as `5%:60s,100%`, in place of those of `--rollout`',
  },
  {
    name: 'id',
    sections: ['match'],
    type: 'other',
    schema: texts,
    meaning: 'patterns for the id of a node, any of which matches',
  },
  {
    name: 'cluster',
    sections: ['match'],
    type: 'other',
    schema: texts,
    meaning: 'patterns for its cluster, any of which matches',
  },
  {
    name: 'metadata',
    sections: ['match'],
    type: 'other',
    schema: { type: 'object', additionalProperties: texts },
    meaning: 'patterns for its metadata, by key, each of which has to match',
  },
] as const satisfies readonly SchemaRow<NodeGroupsSection>[];

export const { keysAt: nodeGroupsKeysAt, formatSchema: formatNodeGroupsSchema } =
  createDocumentKeys<NodeGroupsSection>({
    title: 'Groups of nodes, and the domains that they get',
    rows: nodeGroupsKeys,
    root: 'file',
  });
