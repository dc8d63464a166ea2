// `counters`: shows how much of their limits descriptors have used, resets their counters, and lifts their limits for a
// time.
import { Argument } from 'commander';
import { toCountText } from '../../shared/count-text.ts';
import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import { describeEnd } from '../../shared/rules/rule-end.ts';
import type { LiftJson } from '../server/admin/controllers/lifts.ts';
import type { RuleSourceJson } from '../server/admin/controllers/sources.ts';
import type { StatusJson } from '../server/admin/status-report.ts';
import type { AdminClient } from '../server/admin-client.ts';
import type { CountersJson } from '../server/fleet/counter-answers.ts';
import { toShortId } from '../server/store/revision.ts';
import { type AdminOptions, addAdminOptions } from './admin/admin-options.ts';
import { askAdmin } from './admin/ask-admin.ts';
import { finishChange } from './admin/change-command.ts';
import { addWaitOptions, type WaitOptions, waitForChange } from './admin/wait-options.ts';
import { toColumns } from './columns.ts';
import { type AddCommand, exitCodes } from './command-frame.ts';
import { addDescriptorOption, type Descriptors } from './descriptor-option.ts';

interface CountersOptions extends AdminOptions, WaitOptions {
  readonly domain: string;
  readonly descriptor: Descriptors;
  readonly worker?: string;
  readonly reason?: string;
  readonly for?: string;
  readonly until?: string;
  readonly end?: boolean;
  readonly json?: boolean;
}

export const addCounters: AddCommand = (command, frame) => {
  const { io, finish, fail } = frame;
  command
    .description(
      'Asks the workers how much of their limits descriptors have used, resets their counters, or lifts their limits for a time.',
    )
    .addArgument(new Argument('<action>', 'what to do').choices(['get', 'reset', 'lift']))
    .requiredOption('--domain <name>', 'the domain of the request');
  addDescriptorOption(command)
    .option(
      '--worker <id>',
      'ask the workers with this node id; without it all that count separately, and two of those that share counters',
    )
    .option('--for <duration>', 'lift: how long, such as 1h; at most 8760h, a year')
    .option('--until <time>', 'lift: instead of --for, a time such as 2026-11-24T18:00:00Z')
    .option('--end', 'lift: instead of both, the lift ends now')
    .option('--reason <text>', 'why, for the audit log; needed for reset and lift');
  addWaitOptions(addAdminOptions(command), `lift: ${waitForChange}`, ['timeout', 'minWorkers'])
    .addHelpText(
      'after',
      `
The workers find the counters by their rules and ask their store. Of those that count together two are asked, and
both answers are shown where they differ: in more than live traffic changes between two questions, a tenth and two
hits. A reset is confirmed when another of them reads nothing afterwards, or less than before, or read nothing
before. After it each of them has forgotten what its local cache knew; what a sliding window still has of the window
before stays.

A lift is a rule with an end, written into the file of the domain: an unlimited one for exactly these values. All workers
get it at once, which --wait waits for, and end it by themselves; another lift of the same descriptor moves the end. What was counted before it
still counts in its window afterwards, and nothing is counted meanwhile.

Exit codes:
  0  every worker that was asked has answered, and a reset is confirmed; or the lift is written, with --wait on all workers
  1  no rule matches, or the lift cannot be written, or a descriptor has no counter, a worker does not answer, or a peer whose workers are not known to be at other control planes, workers that count together differ, or a reset is forbidden or not confirmed
  2  wrong usage, no such worker, or the admin API does not answer
  3  with --wait: the lift is written, but not yet in force everywhere, on too few workers, or not known
  4  with --wait: the lift is written, but a newer revision is invalid, taken back, or held back for an approval`,
    )
    .action(async (action: 'get' | 'reset' | 'lift', options: CountersOptions) => {
      const { domain, descriptor: descriptors, worker, reason, json } = options;
      if (action !== 'get' && reason === undefined) {
        return fail(`counters ${action} needs --reason TEXT`);
      }
      const misuse = checkLiftOptions(action, options);
      if (misuse !== undefined) return fail(misuse);
      if (action === 'lift') return lift(options);
      const asked = { domain, descriptors, worker };
      const call = {
        method: 'POST',
        path: action === 'reset' ? '/resets' : '/counters',
        body: action === 'reset' ? { ...asked, reason } : asked,
      } as const;
      const codes = { 409: exitCodes.no };
      const answer = await askAdmin<CountersJson>(frame, options, call, codes);
      if (answer === undefined) return;
      const { value: counters, client } = answer;
      const nowMs = io.clock.wallMs();
      const { text, problems } = formatCounters(counters, descriptors, nowMs);
      const lost = await describeLost(client, action, counters);
      if (json) io.write(`${JSON.stringify(counters, undefined, 2)}\n`);
      else {
        io.write(text);
        if (action === 'get') io.write(await describeRules(client, counters));
        io.writeError(problems + lost.text);
      }
      if (problems !== '' || lost.isMissed) finish(exitCodes.no);
    });

  async function lift(options: CountersOptions): Promise<void> {
    const { domain, descriptor: descriptors, reason, for: span, until, end, json } = options;
    const body = { domain, descriptors, for: span, until, end, reason };
    const call = { method: 'POST', path: '/lifts', body } as const;
    const codes = { 404: exitCodes.no, 409: exitCodes.no, 422: exitCodes.no };
    const answer = await askAdmin<LiftJson>(frame, options, call, codes);
    if (answer === undefined) return;
    const { value: lifted, client } = answer;
    const rules = escapeText(lifted.rules);
    const text =
      lifted.until === null
        ? `the lift of ${rules} has ended`
        : `${rules} is lifted ${describeEnd(Date.parse(lifted.until), io.clock.wallMs())}`;
    if (!json) io.write(`${text}: revision ${lifted.revision}\n`);
    await finishChange(frame, client, options, lifted);
  }
};

/** A peer without an answer does not matter if its workers are known to be connected to other control planes. */
async function describeLost(
  client: AdminClient,
  action: 'get' | 'reset',
  { missing }: CountersJson,
): Promise<{ readonly text: string; readonly isMissed: boolean }> {
  if (missing.length > 0 && action === 'get') {
    const result = await client.call({ method: 'GET', path: '/status' });
    const status = result.ok && result.answer.status === 200 && result.answer.value;
    const { verdict, controlPlanes = [] } = (status || {}) as Partial<StatusJson>;
    // A peer that answers by now has counters that this answer lacks.
    const known = missing.flatMap(
      ({ url }) => controlPlanes.find((each) => each.url === url)?.error ?? [],
    );
    if (known.length === missing.length && verdict !== 'not_known') {
      return { text: toLines('warning', known), isMissed: false };
    }
  }
  const texts = missing.map(({ url, error }) => `peer ${url} does not answer (${error})`);
  return { text: toLines('error', texts), isMissed: missing.length > 0 };
}

function toLines(kind: 'error' | 'warning', texts: readonly string[]): string {
  return texts.map((text) => `${kind}: ${escapeText(text)}\n`).join('');
}

/** One line for each rule of the counters: whether it refuses now, its position, and its last author. */
async function describeRules(client: AdminClient, { answers }: CountersJson): Promise<string> {
  const counters = answers.flatMap((each) =>
    each.counters.filter(({ problem }) => problem === null),
  );
  const byRule = Map.groupBy(counters, ({ rule }) => rule);
  const lines = [...byRule].map(async ([rule, own]) => {
    const full = own.filter(({ used, limit }) => used >= limit);
    const isRefusing = full.some(({ shadowMode }) => !shadowMode);
    const shadow = full.length === 0 ? 'not limited' : 'limited, but for shadow mode,';
    const state = isRefusing ? 'limited' : shadow;
    const path = `/sources?rule=${encodeURIComponent(rule)}`;
    const result = await client.call({ method: 'GET', path });
    // A worker may have a rule that is no longer in force, or that is on trial.
    const isKnown = result.ok && result.answer.status === 200;
    const source = isKnown ? toSourceText(result.answer.value as RuleSourceJson) : '';
    return `${escapeText(`${state} now by the rule ${rule}${source}`)}\n`;
  });
  return (await Promise.all(lines)).join('');
}

function toSourceText({ rule: { file, line, column }, changed, trial }: RuleSourceJson): string {
  const position = [file, line, column].filter((each) => each != null);
  const where = ` (${position.join(':')})`;
  const tried = trial === null || trial.texts.length === 0 ? '' : ', being changed by a rollout';
  if (changed === null) return `${where}${tried}`;
  const { id, author, at: time, message } = changed.revision;
  const [title = ''] = (message ?? '').split('\n', 1);
  const what = `${toShortId(id)}${title === '' ? '' : ` "${title}"`}`;
  return `${where}${tried}, last changed by ${author ?? 'an unknown author'} at ${time} in ${what}`;
}

/** Undefined if the options are compatible. */
function checkLiftOptions(
  action: 'get' | 'reset' | 'lift',
  { for: span, until, end, worker, wait }: CountersOptions,
): string | undefined {
  const ends = [span, until, end].filter((each) => each !== undefined).length;
  if (action !== 'lift') {
    if (wait) return '--wait needs counters lift';
    return ends === 0 ? undefined : '--for, --until and --end need counters lift';
  }
  if (worker !== undefined) return 'counters lift is for all workers: leave out --worker';
  return ends === 1
    ? undefined
    : 'counters lift needs an end: one of --for DURATION, --until TIME and --end';
}

function formatCounters(
  { answers, notAsked, lifted = [] }: CountersJson,
  descriptors: Descriptors,
  nowMs: number,
) {
  const isLifted = new Set(lifted.map(({ descriptor }) => descriptor));
  const lifts = lifted.map(({ descriptor, until }) => {
    const text = escapeText(toText(descriptors[descriptor] ?? []));
    return `${text} is lifted ${describeEnd(Date.parse(until), nowMs)}: nothing is counted\n`;
  });
  const rows: string[][] = [];
  const problems: string[] = [];
  const differing = Map.groupBy(
    answers.filter(({ differs }) => differs),
    ({ group }) => group,
  );
  for (const group of differing.values()) {
    const names = group.map(({ worker, address }) => `${worker} at ${address}`).join(' and ');
    problems.push(`error: workers that count together differ: ${escapeText(names)}\n`);
  }
  for (const { worker, address, together, differs, problem, counters } of answers) {
    const who = escapeText(worker || address);
    const counting = together === 1 ? who : `${who} and ${toCountText(together - 1, 'other')}`;
    if (problem !== null) problems.push(`error: worker ${who}: ${escapeText(problem)}\n`);
    for (const counter of counters) {
      if (counter.problem !== null && isLifted.has(counter.descriptor)) continue;
      if (counter.problem !== null) {
        problems.push(`error: worker ${who}: ${escapeText(counter.problem)}\n`);
        continue;
      }
      rows.push([
        `${counter.used}`,
        `${counter.limit}`,
        escapeText(counter.window),
        `${counter.secondsUntilReset}s`,
        differs ? `${who} (differs)` : counting,
        escapeText(toText(descriptors[counter.descriptor] ?? [])),
      ]);
    }
  }
  if (notAsked > 0) {
    const text = `${toCountText(notAsked, 'worker')} with counters of their own`;
    problems.push(`error: ${text} were not asked: name one with --worker\n`);
  }
  const headings = ['USED', 'LIMIT', 'WINDOW', 'RESET IN', 'WORKER', 'DESCRIPTOR'];
  const alone = answers.filter(({ confirmedBy }) => confirmedBy === 'itself');
  const names = alone.map(({ worker, address }) => escapeText(worker || address)).join(', ');
  const note = alone.length === 0 ? '' : `confirmed only by the worker that reset: ${names}\n`;
  return {
    text: (rows.length === 0 ? '' : toColumns([headings, ...rows])) + lifts.join('') + note,
    problems: [...new Set(problems)].join(''),
  };
}

function toText(entries: Descriptors[number]): string {
  return entries.map(({ key, value }) => `(${key}=${value})`).join('');
}
