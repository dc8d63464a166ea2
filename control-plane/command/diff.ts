// `diff`: shows the changes for requests between two sets of rules.

import { toPositionText } from '../../shared/rules/lookup/located-rule.ts';
import { isError } from '../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import type { Limit } from '../../shared/rules/rule.ts';
import { toLimitJson } from '../authoring/explain/explanation-json.ts';
import type { RuleChange } from '../authoring/rule-change.ts';
import { toRuleChangeJson } from '../server/admin/rule-change-json.ts';
import { compareForNodes, readGroupDomains } from '../server/snapshot/node-change.ts';
import { type AdminOptions, addAdminOptions, givenAdminOption } from './admin/admin-options.ts';
import { formatChanges } from './change-text.ts';
import { type AddCommand, describeExitCodes, exitCodes } from './command-frame.ts';
import { readGitInput } from './input/git-input.ts';
import { readPathInput } from './input/path-input.ts';
import { addGitOptions, type LoadedRules, loadRules } from './input/rule-input.ts';
import type { RuleInputResult } from './input/rule-texts.ts';
import { readServerInput, serverPrefix } from './input/server-input.ts';

interface DiffOptions extends AdminOptions {
  readonly git?: string;
  readonly gitPath?: string;
  readonly mergeDomains?: boolean;
  readonly json?: boolean;
}

const gitPrefix = 'git:';

export const addDiff: AddCommand = (command, { io, finish, fail }) => {
  command
    .description(
      'Compares what two sets of rules mean for requests: limits added, removed, raised or lowered, requests newly blocked or unlimited, shadow mode, sharing, metrics. The order of files and rules does not matter.',
    )
    .argument(
      '<before>',
      "a file, a directory, git:REVISION with --git, or server:REVISION of a control plane, whose revisions 'history' lists; server: is the revision in force there",
    )
    .argument('<after>', 'the same');
  addAdminOptions(addGitOptions(command))
    .option('--merge-domains', 'allow several files for one domain, as MERGE_DOMAIN_CONFIG does')
    .addHelpText(
      'after',
      describeExitCodes(
        'nothing changes',
        'something changes',
        'wrong usage, an input that cannot be read, or rules with errors',
      ),
    )
    .action(async (before: string, after: string, options: DiffOptions) => {
      const sides = [before, after];
      const usesGit = sides.some((side) => side.startsWith(gitPrefix));
      if (usesGit !== (options.git !== undefined)) {
        const message = usesGit
          ? `${gitPrefix}REVISION needs --git URL; for the repository here, --git .`
          : `--git needs a side that is ${gitPrefix}REVISION`;
        refuse(message);
      }
      const adminOption = givenAdminOption(command);
      if (adminOption !== undefined && !sides.some((side) => side.startsWith(serverPrefix))) {
        refuse(`${adminOption} needs a side that is ${serverPrefix}REVISION`);
      }
      const loaded: LoadedRules[] = [];
      for (const side of sides) {
        const read = await readSide(side, options);
        if (!read.ok) return fail(read.message);
        // The rules of a server are valid under its own settings.
        const mergesDomains = options.mergeDomains ?? side.startsWith(serverPrefix);
        loaded.push(loadRules(read.input, mergesDomains));
      }
      const valid = loaded.flatMap(({ ruleSet, documents, nodeGroups }) => {
        if (ruleSet === undefined) return [];
        const groups = readGroupDomains(nodeGroups?.text, [...ruleSet.domains.keys()].sort());
        return [{ ruleSet, documents, groups }];
      });
      const [was, is] = valid;
      if (valid.length < 2 || was === undefined || is === undefined) {
        const errors = loaded.flatMap(({ problems }) => problems.filter(isError));
        io.writeError(`${formatProblems(errors)}\nerror: rules with errors are not compared\n`);
        finish(exitCodes.error);
        return;
      }
      const changes = compareForNodes(was, is);
      io.write(options.json ? formatJson(changes) : formatChanges(changes.map(toRuleChangeJson)));
      finish(changes.length === 0 ? exitCodes.ok : exitCodes.no);
    });

  function refuse(message: string): never {
    return command.error(`error: ${message}`, { exitCode: exitCodes.error });
  }

  async function readSide(side: string, options: DiffOptions): Promise<RuleInputResult> {
    if (side.startsWith(serverPrefix)) {
      const revision = side.slice(serverPrefix.length);
      return readServerInput(revision, options, io);
    }
    if (!side.startsWith(gitPrefix)) return readPathInput([side]);
    const revision = side.slice(gitPrefix.length);
    const source = { url: options.git ?? '', revision, folder: options.gitPath ?? '' };
    return readGitInput(source, io);
  }
};

function formatJson(changes: readonly RuleChange[]): string {
  const json = {
    same: changes.length === 0,
    changes: changes.map((change) => ({
      kind: change.kind,
      domain: change.domain,
      requests: change.requests.map(({ key, value }) => ({ key, value: value || null })),
      text: change.text,
      before: toFullJson(change.before),
      after: toFullJson(change.after),
      ruleBefore: change.ruleBefore ? toPositionText(change.ruleBefore) : null,
      ruleAfter: change.ruleAfter ? toPositionText(change.ruleAfter) : null,
    })),
  };
  return `${JSON.stringify(json, undefined, 2)}\n`;
}

function toFullJson(limit: Limit | undefined) {
  return limit === undefined ? null : { ...toLimitJson(limit), metadata: limit.metadata ?? null };
}
