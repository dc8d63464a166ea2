// `top`: lists the most limited values, and the rules with the most hits over limit.
import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import { describeEnd } from '../../shared/rules/rule-end.ts';
import type { TopJson } from '../server/admin/controllers/top.ts';
import { type AdminOptions, addAdminOptions } from './admin/admin-options.ts';
import { askAdmin } from './admin/ask-admin.ts';
import { toColumns } from './columns.ts';
import { type AddCommand, exitCodes } from './command-frame.ts';

type LimitRate = NonNullable<TopJson['rules'][number]['limits']>[number];

interface TopOptions extends AdminOptions {
  readonly domain?: string;
  readonly limit: string;
  readonly json?: boolean;
}

export const addTop: AddCommand = (command, frame) => {
  const { io, finish } = frame;
  command
    .description(
      'Shows which values were limited most in the last one or two minutes, and the rules with the most hits over limit, as the workers report them.',
    )
    .option('--domain <name>', 'of this domain alone')
    .option('--limit <number>', 'how many of each, up to 200', '20');
  addAdminOptions(command)
    .addHelpText(
      'after',
      `
Counts are requests that were answered OVER_LIMIT because of the value. Each worker keeps 1,000 values: where
more are limited, a count is shown with its bounds.

Exit codes:
  0  all reporting workers answered
  2  wrong usage, or the admin API does not answer
  3  no worker has reported, or a peer does not answer`,
    )
    .action(async ({ domain, limit, ...options }: TopOptions) => {
      const query = new URLSearchParams({ limit, ...(domain !== undefined && { domain }) });
      const call = { method: 'GET', path: `/top?${query}` } as const;
      const answer = await askAdmin<TopJson>(frame, options, call);
      if (answer === undefined) return;
      const top = answer.value;
      if (options.json) io.write(`${JSON.stringify(top, undefined, 2)}\n`);
      else io.write(formatTop(top, io.clock.wallMs()));
      for (const { url, error } of top.missing) {
        io.writeError(`${escapeText(`warning: peer ${url} does not answer (${error})`)}\n`);
      }
      if (top.workers === 0) {
        io.writeError(
          'warning: no worker has reported yet: each reports every 5s to the control plane from which it gets its rules, unless CONFIG_FLEET_LINK=false\n',
        );
      }
      if (top.workers === 0 || top.missing.length > 0) finish(exitCodes.pending);
    });
};

/** Which limits of the rule's list are exceeded. */
function describeLimits(limits: readonly LimitRate[]): string {
  const over = limits.filter(({ overLimitPerSecond }) => overLimitPerSecond > 0);
  const texts = over.map((each) => `${escapeText(each.limit)} ${each.overLimitPerSecond}`);
  return texts.length === 0 ? '' : ` (over limit: ${texts.join(', ')})`;
}

function formatTop({ values, unlistedAtMost, rules, workers }: TopJson, nowMs: number): string {
  if (workers === 0) return '';
  const limited = values.map(({ atLeast, atMost, perSecond, perSecondBefore, ...value }) => [
    atLeast === atMost ? `${atMost}` : `${atLeast} to ${atMost}`,
    `${perSecond}`,
    perSecondBefore === null ? '-' : `${perSecondBefore}`,
    escapeText(value.domain),
    escapeText(value.entries.map((entry) => `(${entry.key}=${entry.value})`).join('')) +
      (value.liftedUntil === undefined
        ? ''
        : `, lifted ${describeEnd(Date.parse(value.liftedUntil), nowMs)}`),
  ]);
  const busy = rules.map(({ rule, shadowMode, limits = [], ...rate }) => [
    `${rate.overLimitPerSecond}`,
    `${rate.nearLimitPerSecond}`,
    `${rate.hitsPerSecond}`,
    `${escapeText(rule)}${describeLimits(limits)}${shadowMode ? ' (shadow mode: not refused)' : ''}`,
  ]);
  const others = unlistedAtMost === 0 ? '' : `any other value: ${unlistedAtMost} times at most\n`;
  return [
    limited.length === 0
      ? 'nothing was limited in the last minute\n'
      : toColumns([['LIMITED', 'A SECOND', 'BEFORE', 'DOMAIN', 'DESCRIPTOR'], ...limited]) + others,
    busy.length === 0
      ? 'no rule had hits in the last minute\n'
      : toColumns([['OVER LIMIT/S', 'NEAR/S', 'HITS/S', 'RULE'], ...busy]),
  ].join('\n');
}
