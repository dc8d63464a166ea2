// `history`: lists the last revisions of a control plane's store.

import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import type { toExplanationJson } from '../authoring/explain/explanation-json.ts';
import type { RuleChangesJson } from '../server/admin/controllers/sources.ts';
import type { RevisionJson, RevisionOutcomeJson } from '../server/admin/revision-json.ts';
import { toShortId } from '../server/store/revision.ts';
import { type AdminOptions, addAdminOptions } from './admin/admin-options.ts';
import { askAdmin } from './admin/ask-admin.ts';
import type { AddCommand, CommandFrame } from './command-frame.ts';

interface HistoryOptions extends AdminOptions {
  readonly limit: string;
  readonly rule?: string;
  readonly json?: boolean;
}

interface ListedRevision extends RevisionJson {
  readonly inForce: boolean;
  readonly newest: boolean;
  /** Older control planes do not include it. */
  readonly outcome?: RevisionOutcomeJson | null;
}

export const addHistory: AddCommand = (command, frame) => {
  const { io } = frame;
  command.description(
    'Lists revisions of the store, the newest first, and the outcome of each: since when and until when it was in force, or by whom and why it was taken back or held back. With --rule, the revisions that changed a rule, each with its value before and after.',
  );
  addAdminOptions(command)
    .option('--limit <number>', 'how many, up to 1000; of changes of a rule up to 100', '20')
    .option(
      '--rule <name>',
      'the history of this rule: its name, such as shop.customer, or a descriptor of a request, such as shop:customer=ada',
    )
    .addHelpText(
      'after',
      '\nExit codes:\n  0  the admin API answered\n  2  wrong usage, or the admin API does not answer',
    )
    .action(async (options: HistoryOptions) => {
      if (options.rule !== undefined) return reportRule(frame, options, options.rule);
      const path = `/revisions?limit=${encodeURIComponent(options.limit)}`;
      const answer = await askAdmin<{ readonly revisions: readonly ListedRevision[] }>(
        frame,
        options,
        { method: 'GET', path },
      );
      if (answer === undefined) return;
      const { revisions } = answer.value;
      if (options.json) io.write(`${JSON.stringify({ revisions }, undefined, 2)}\n`);
      else io.write(revisions.map(formatRevision).join(''));
    });
};

/** Reads further pages until there are enough changes: one answer examines only as many revisions as it has time for. */
async function reportRule(
  frame: CommandFrame,
  options: HistoryOptions,
  wanted: string,
): Promise<void> {
  const { io } = frame;
  const rule = await findRuleName(frame, options, wanted);
  if (rule === undefined) return;
  const most = Number(options.limit);
  const changes: RuleChangesJson['changes'] = [];
  let before: string | null = null;
  do {
    const query: URLSearchParams = new URLSearchParams({
      rule,
      limit: Number.isInteger(most) ? `${Math.min(100, most - changes.length)}` : options.limit,
      ...(before !== null && { before }),
    });
    const path = `/sources/changes?${query}`;
    const answer = await askAdmin<RuleChangesJson>(frame, options, { method: 'GET', path });
    if (answer === undefined) return;
    changes.push(...answer.value.changes);
    before = answer.value.next;
  } while (before !== null && changes.length < most);
  if (options.json) io.write(`${JSON.stringify({ rule, changes, next: before }, undefined, 2)}\n`);
  else if (changes.length > 0) io.write(changes.map(formatChange).join(''));
  else io.write(`no known revision has the rule ${escapeText(rule)}\n`);
}

/** The name of the rule that a request matches, if a request is given. */
async function findRuleName(
  frame: CommandFrame,
  options: HistoryOptions,
  wanted: string,
): Promise<string | undefined> {
  const [, domain, text] = /^([^:]+):(.+=.*)$/s.exec(wanted) ?? [];
  if (domain === undefined || text === undefined) return wanted;
  const entries = text.split(',').map((pair) => {
    const [key = '', ...value] = pair.split('=');
    return { key, value: value.join('=') };
  });
  const answer = await askAdmin<ReturnType<typeof toExplanationJson>>(frame, options, {
    method: 'POST',
    path: '/explanations',
    body: { domain, descriptors: [entries] },
  });
  if (answer === undefined) return undefined;
  const [first] = answer.value.descriptors;
  if (first?.match == null) {
    frame.fail(`no rule matches ${escapeText(wanted)}`);
    return undefined;
  }
  const levels = first.levels.flatMap(({ candidates }) =>
    candidates.filter(({ chosen }) => chosen),
  );
  return [domain, ...levels.map(({ composite }) => composite)].join('.');
}

/** Like blame: the revision, time, author, change, and reason. */
function formatChange(change: RuleChangesJson['changes'][number]): string {
  const { revision, before, to, texts, restores, outcome } = change;
  const { id, at, author, message } = revision;
  const what = before === null ? `${to ?? 'no rule'} (the oldest known)` : texts.join('; ');
  const back =
    restores === null ? '' : restores === id ? ', as before' : `, as in ${toShortId(restores)}`;
  const ended =
    outcome === null || served.has(outcome.kind) ? '' : `  [${outcome.kind.replaceAll('_', ' ')}]`;
  const words = [author ?? 'author not known', message?.split('\n')[0]].filter(Boolean).join(': ');
  return `${toShortId(id)}  ${at}  ${escapeText(`${what}${back}`)}${ended}\n              ${escapeText(words)}\n`;
}

const served: ReadonlySet<string> = new Set(['in_force', 'was_in_force']);

/** One line, and a second one for the reason if there is one. */
function formatRevision(revision: ListedRevision): string {
  const { id, at, author, message } = revision;
  const words = [author, message?.split('\n')[0]].filter(Boolean).join(': ');
  const reason = revision.outcome?.reason ?? null;
  const why = reason === null ? '' : `              ${escapeText(reason)}\n`;
  return `${toShortId(id)}  ${at}  ${escapeText(words)}  [${toOutcomeText(revision)}]\n${why}`;
}

/** Such as `was in force from 2026-11-24T10:00:00.000Z to 2026-11-24T12:00:00.000Z`, `taken back by ada at ...`. */
function toOutcomeText({ inForce, newest, outcome }: ListedRevision): string {
  if (outcome == null) {
    if (inForce) return 'in force';
    return newest ? 'not in force' : 'not known';
  }
  const { kind, since, until, by } = outcome;
  const words = kind.replaceAll('_', ' ');
  const who = by === null ? '' : ` by ${escapeText(by)}`;
  if (since === null) return words;
  if (kind === 'in_force' || kind === 'on_trial') return `${words} since ${since}`;
  if (kind === 'was_in_force')
    return `${words} from ${since}${until === null ? '' : ` to ${until}`}`;
  return `${words}${who} at ${since}`;
}
