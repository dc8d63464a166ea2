// `test`: runs tests of rules with a worker's decisions, on a simulated clock.
import { Option } from 'commander';
import { type AddCommand, describeExitCodes, exitCodes } from './command-frame.ts';
import { findTestFiles } from './test/find-test-files.ts';
import type { TestReport } from './test/run-test-files.ts';
import { isGood } from './test/summary.ts';

const formats = ['human', 'json', 'junit', 'github'] as const;
type Format = (typeof formats)[number];

interface TestOptions {
  readonly format?: Format;
  readonly json?: boolean;
  readonly update?: boolean;
  readonly coverage?: boolean;
}

export const addTest: AddCommand = (command, { io, finish, fail }) => {
  command
    .description(
      'Asks the requests of test files of a worker without ports, and compares its answers with the expected ones. Named files are read whatever their names, below directories *_test.yaml and *_test.yml.',
    )
    .argument('<path...>', 'files and directories')
    .addOption(new Option('--format <format>', 'output format (default: human)').choices(formats))
    .option('--json', 'the same as --format json')
    .option(
      '--update',
      'replace the expected answers by the actual ones; the rest of each file remains',
    )
    .option('--coverage', 'list the limits that no test reaches')
    .addHelpText(
      'after',
      `
A test file names its rules, and has tests with requests and what is expected of the answers:

  rules: ../rules
  tests:
    - name: a customer has three requests a minute
      domain: shop
      requests:
        - {descriptor: {customer: ada}, times: 3, code: OK, remaining: 0}
        - {descriptor: {customer: ada}, code: OVER_LIMIT, reset: 60s}

--update also fills keys without a value, such as 'remaining:'. junit is JUnit XML; github is annotations of a
GitHub workflow.
${describeExitCodes('all tests passed', 'a test failed, or a file or its rules have errors', 'wrong usage, or an input that cannot be read')}`,
    )
    .action(async (paths: string[], options: TestOptions) => {
      const { json, format = json ? 'json' : 'human', update = false, coverage = false } = options;
      if (json && format !== 'json') {
        const message = `error: --json and --format ${format} exclude each other`;
        command.error(message, { exitCode: exitCodes.error });
      }
      const found = await findTestFiles(paths);
      if (!found.ok) return fail(found.message);
      const { runTestFiles } = await import('./test/run-test-files.ts');
      const report = await runTestFiles(found.paths, { update, coverage });
      io.write(await formatReport(report, format));
      finish(isGood(report) ? exitCodes.ok : exitCodes.no);
    });

  async function formatReport(report: TestReport, format: Format): Promise<string> {
    switch (format) {
      case 'human': {
        const { formatHuman } = await import('./test/human-format.ts');
        return formatHuman(report, io.isTerminal && !io.environment['NO_COLOR']);
      }
      case 'json':
        return (await import('./test/json-format.ts')).formatJson(report);
      case 'junit':
        return (await import('./test/junit-format.ts')).formatJunit(report);
      case 'github':
        return (await import('./test/github-format.ts')).formatGithub(report);
    }
  }
};
