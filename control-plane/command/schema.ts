// `schema`: prints the JSON Schema of a kind of documents, with which editors complete and check them.
import { Argument } from 'commander';
import { formatRuleSchema } from '../authoring/schema/json-schema.ts';
import { type AddCommand, describeExitCodes } from './command-frame.ts';

const schemas = {
  rules: async () => formatRuleSchema(),
  policy: async () => (await import('../authoring/policy/policy-keys.ts')).formatPolicySchema(),
  groups: async () => (await import('../server/snapshot/node-groups.ts')).formatNodeGroupsSchema(),
  tests: async () =>
    (await import('../authoring/rehearsal/rule-tests/test-keys.ts')).formatTestSchema(),
} as const satisfies Readonly<Record<string, () => Promise<string>>>;

export const addSchema: AddCommand = (command, { io }) => {
  command
    .description(
      'Prints the JSON Schema of rules documents, of their tests, of the policy for them, or of the groups of nodes that get them. An editor with a YAML language server completes keys, explains them and marks mistakes while you write; `check` and `test` find more.',
    )
    .addArgument(
      new Argument('[kind]', 'of which documents').choices(Object.keys(schemas)).default('rules'),
    )
    .option('--json', 'no effect: the output is JSON')
    .addHelpText(
      'after',
      `
Save it, and name it at the top of a file:
  # yaml-language-server: $schema=rules.schema.json
${describeExitCodes('printed', 'not used', 'wrong usage')}`,
    )
    .action(async (kind: keyof typeof schemas) => {
      io.write(await schemas[kind]());
    });
};
