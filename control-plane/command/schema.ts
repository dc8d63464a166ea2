// `schema`: prints the JSON Schema of a rules document, with which editors complete and check rules.
import { formatRuleSchema } from '../../shared/rules/key-documents.ts';
import { type AddCommand, describeExitCodes } from './command-frame.ts';

export const addSchema: AddCommand = (program, { io }) => {
  program
    .command('schema')
    .summary('print the JSON Schema of a rules document, for editors')
    .description(
      'Prints the JSON Schema of a rules document. An editor with a YAML language server completes keys, says what they mean and marks mistakes while you write; `check` sees more.',
    )
    .option('--json', 'the same: it is JSON already')
    .addHelpText(
      'after',
      `
Save it, and name it at the top of a rules file:
  # yaml-language-server: $schema=rules.schema.json
${describeExitCodes('printed', 'not used', 'wrong usage')}`,
    )
    .action(() => {
      io.write(formatRuleSchema());
    });
};
