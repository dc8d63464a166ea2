// `explain`: shows which rule a request matches and why, and the keys under which its hits are counted.

import { runAtOnce } from '../../shared/in-slices.ts';
import { didYouMean, nearestWord } from '../../shared/nearest-word.ts';
import { groupByDomain } from '../../shared/rules/file-order.ts';
import { locateRules } from '../../shared/rules/lookup/located-rule.ts';
import { createDomainTree } from '../../shared/rules/lookup/rule-tree.ts';
import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import { isError } from '../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { documentsAt } from '../../shared/rules/rule-end.ts';
import { explainRequest } from '../authoring/explain/explained-request.ts';
import { toExplanationJson } from '../authoring/explain/explanation-json.ts';
import { type AdminOptions, addAdminOptions, givenAdminOption } from './admin/admin-options.ts';
import { type AddCommand, describeExitCodes, exitCodes } from './command-frame.ts';
import { addDescriptorOrBucketOptions, type Descriptors } from './descriptor-option.ts';
import { formatExplanation } from './explain/explanation-text.ts';
import {
  addRuleInputOptions,
  checkRuleInputOptions,
  loadRules,
  type RuleInputOptions,
  readRuleInput,
} from './input/rule-input.ts';
import { readServerInput, serverPrefix } from './input/server-input.ts';

interface ExplainOptions extends RuleInputOptions, AdminOptions {
  readonly domain: string;
  readonly descriptor?: Descriptors;
  readonly bucket?: Descriptors;
  readonly json?: boolean;
}

/** How many domains are listed when the requested one does not exist. */
const maxDomainsShown = 20;

export const addExplain: AddCommand = (command, { io, finish, fail }) => {
  command
    .description(
      'Searches rules for a request level by level, and shows each candidate rule, the limit, the key in the counter store and the name in the statistics.',
    )
    .argument(
      '[path...]',
      `files and directories, or ${serverPrefix} for the revision in force at a control plane, ${serverPrefix}REVISION for one of its revisions`,
    );
  addAdminOptions(addRuleInputOptions(command)).requiredOption(
    '--domain <name>',
    'the domain of the request',
  );
  addDescriptorOrBucketOptions(command)
    .addHelpText(
      'after',
      `
Keys are shown for a worker with its default settings: no CACHE_KEY_PREFIX, weeks from Thursday,
months of 30 days, and dots kept in the names of statistics.
${describeExitCodes('explained, whether a limit applies or not', 'no such domain, or rules with errors', 'wrong usage, or an input that cannot be read')}`,
    )
    .action(async (paths: string[], options: ExplainOptions) => {
      const { domain, json = false } = options;
      const server = paths.find((path) => path.startsWith(serverPrefix));
      const misuse =
        checkRuleInputOptions(paths, options) ??
        checkServerUse(paths, server) ??
        (options.descriptor || options.bucket ? undefined : 'set --descriptor or --bucket');
      if (misuse !== undefined) command.error(`error: ${misuse}`, { exitCode: exitCodes.error });
      const read =
        server === undefined
          ? await readRuleInput(paths, options, io)
          : await readServerInput(server.slice(serverPrefix.length), options, io);
      if (!read.ok) return fail(read.message);
      const nowMs = io.clock.wallMs();
      // The rules of a server are valid under its own settings.
      const merge = options.mergeDomains ?? server !== undefined;
      const { documents, ruleSet, problems } = loadRules(read.input, merge, false, nowMs);
      if (ruleSet === undefined) {
        const errors = problems.filter(isError);
        io.writeError(`${formatProblems(errors)}\nerror: rules with errors match nothing\n`);
        finish(exitCodes.no);
        return;
      }
      const current = documentsAt(documents, nowMs);
      const located = locateRules(current);
      const rules = located.get(domain);
      if (rules === undefined) {
        reportUnknownDomain(domain, [...located.keys()].sort(), json);
        finish(exitCodes.no);
        return;
      }
      const descriptors = options.descriptor ?? nestBuckets(domain, current, options.bucket ?? []);
      const explained = runAtOnce(explainRequest(domain, rules, descriptors, nowMs));
      io.write(
        json
          ? `${JSON.stringify(toExplanationJson(domain, explained), undefined, 2)}\n`
          : formatExplanation(domain, explained, nowMs),
      );
    });

  /** The mistake in the options that name a control plane or configure access to one; undefined without one. */
  function checkServerUse(paths: readonly string[], server: string | undefined) {
    if (server !== undefined) {
      return paths.length > 1
        ? `${server} cannot be combined with other paths: it has all rules of its revision`
        : undefined;
    }
    const option = givenAdminOption(command);
    return option && `${option} needs ${serverPrefix} in place of PATH`;
  }

  /** Sorts a bucket's entries in the order in which rules nest them, as the quota service does; keeps the given order
   * if no rule matches. */
  function nestBuckets(
    domain: string,
    documents: readonly RuleDocument[],
    buckets: Descriptors,
  ): Descriptors {
    const lists = (groupByDomain(documents).get(domain) ?? []).map((each) => each.descriptors);
    const { rules } = runAtOnce(createDomainTree(domain, lists, false));
    return buckets.map((bucket) => {
      const nesting = rules.nest(bucket);
      if (nesting?.isAmbiguous) {
        const keys = escapeText(bucket.map(({ key }) => key).join(', '));
        io.writeError(
          `warning: a bucket with ${keys} matches several rules: the first one applies\n`,
        );
      }
      return nesting?.entries ?? bucket;
    });
  }

  function reportUnknownDomain(domain: string, known: readonly string[], json: boolean): void {
    const nearest = nearestWord(domain, known);
    if (json) {
      const body = { domain, error: 'unknown domain', nearest: nearest ?? null, domains: known };
      io.write(`${JSON.stringify(body, undefined, 2)}\n`);
      return;
    }
    const hint = didYouMean(nearest, '; ') ?? '';
    const shown = known.slice(0, maxDomainsShown).join(', ');
    const more =
      known.length > maxDomainsShown ? ` and ${known.length - maxDomainsShown} more` : '';
    const list = known.length === 0 ? 'there are no domains' : `domains: ${shown}${more}`;
    io.writeError(
      `${escapeText(`error: no rules for domain '${domain}'${hint}`)}\n${escapeText(list)}\n`,
    );
  }
};
