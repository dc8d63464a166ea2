// `status`: is the newest revision in force everywhere? One line and an exit code.
import { parseDuration } from '../../shared/duration.ts';
import { escapeText } from '../../shared/rules/escaped-text.ts';
import { formatProblems } from '../../shared/rules/problem-text.ts';
import { toExcerpt } from '../../shared/rules/text-excerpt.ts';
import type { DisagreementJson } from '../admin/agreement-report.ts';
import { fromProblemJson } from '../admin/problem-json.ts';
import type { StatusJson } from '../admin/status-report.ts';
import { shortestRevisionPrefix } from '../store/store.ts';
import type { AdminCall, AdminCallResult, AdminClient } from './admin/admin-client.ts';
import {
  type AccessOptions,
  addAdminOptionsForSeveral,
  openAdminClients,
} from './admin/admin-options.ts';
import { formatRefusal } from './admin/answer-text.ts';
import { type AddCommand, type CommandIo, type ExitCode, exitCodes } from './command-frame.ts';
import { startProgress } from './progress.ts';
import { parseDebugUrl, readUnmatchedPage, type UnmatchedPage } from './status/unmatched-page.ts';
import { type Answer, judgeAnswers, type Question, type Verdict } from './status/verdict.ts';

interface StatusOptions extends AccessOptions {
  readonly adminUrl?: readonly string[];
  readonly revision?: string;
  readonly minWorkers: number;
  readonly wait?: boolean;
  readonly timeout: string;
  readonly json?: boolean;
  readonly workerDebug?: readonly URL[];
}

const pauseMs = 250;
/** While waiting, the store itself is asked only this often. */
const asksPerLook = 8;
/** However little of the time is left, an answer gets this long to come. */
const shortestCallMs = 1_000;
/** What a proxy answers while there is no control plane behind it. */
const awayStatuses: readonly number[] = [502, 503, 504];

export const addStatus: AddCommand = (program, { io, finish }) => {
  const command = program
    .command('status')
    .summary('is the newest revision in force on every connected worker?')
    .description(
      'Asks a control plane for the newest revision and for what every connected worker has, and answers in one line.',
    );
  addAdminOptionsForSeveral(command)
    .option(
      '--revision <id>',
      'ask for this revision: it, or one that was made from it, has to be the newest one',
    )
    .option(
      '--min-workers <count>',
      'how many workers have to be connected and have it; 0 for none',
      parseCount,
      1,
    )
    .option('--wait', 'wait until the answer is yes, or will not become it')
    .option('--timeout <duration>', 'with --wait: for how long', '60s')
    .option(
      '--worker-debug <address>',
      'show the traffic that this worker finds no rule for, from its debug port; repeat it for several',
      (text: string, earlier: readonly URL[] | undefined) => [
        ...(earlier ?? []),
        parseWorker(text),
      ],
    )
    .addHelpText(
      'after',
      `
Exit codes:
  0  the newest revision is valid, and in force on every connected worker
  2  wrong usage, no such revision, or no admin API gives an answer
  3  not yet, not everywhere, on too few workers, or not known
  4  the newest revision is invalid, or held back until somebody approves it; workers keep what they have

A warning tells of workers whose settings make them count differently; it changes no exit code. Nor does
what --worker-debug shows.`,
    )
    .action(async (options: StatusOptions) => {
      const timeout = parseDuration(options.timeout);
      if (!timeout.ok || timeout.ms < 0) {
        const reason = timeout.ok ? 'it is negative' : timeout.reason;
        const message = `error: --timeout ${options.timeout}: ${reason}; write a duration such as 60s`;
        command.error(message, { exitCode: exitCodes.trouble });
        return;
      }
      const { revision, minWorkers } = options;
      if (revision !== undefined && revision.length < shortestRevisionPrefix) {
        const message = `error: --revision needs at least ${shortestRevisionPrefix} characters`;
        command.error(message, { exitCode: exitCodes.trouble });
      }
      const opened = await openAdminClients(options.adminUrl, options, io.environment);
      if (!opened.ok) {
        io.writeError(`error: ${opened.message}\n`);
        finish(exitCodes.trouble);
        return;
      }
      let waitsFor = 'for an answer of the admin API';
      const stopProgress = startProgress(io, () => waitsFor);
      const note = (text: string) => {
        waitsFor = text;
      };
      const question = { revision, minWorkers };
      finish(await answer(opened.clients, options, question, timeout.ms, io, note));
      stopProgress();
    });

  function parseCount(text: string): number {
    if (/^\d{1,6}$/.test(text)) return Number(text);
    const message = `error: --min-workers '${text}': expected a whole number`;
    return command.error(message, { exitCode: exitCodes.trouble });
  }

  function parseWorker(text: string): URL {
    const url = parseDebugUrl(text);
    if (url !== undefined) return url;
    const message = `error: --worker-debug '${text}': expected the address of a debug port, such as 127.0.0.1:6070`;
    return command.error(message, { exitCode: exitCodes.trouble });
  }
};

async function answer(
  clients: readonly AdminClient[],
  options: StatusOptions,
  question: Question,
  timeoutMs: number,
  io: CommandIo,
  note: (waitsFor: string) => void,
): Promise<ExitCode> {
  const endMs = io.clock.monotonicMs() + timeoutMs;
  const { revision } = question;
  const query = revision === undefined ? '' : `&revision=${encodeURIComponent(revision)}`;
  for (let asked = 0; ; asked++) {
    const look = asked % asksPerLook === 0;
    const leftMs = Math.max(shortestCallMs, endMs - io.clock.monotonicMs());
    const call: AdminCall = {
      method: 'GET',
      path: `/status?look=${look}${query}`,
      ...(options.wait === true && { timeoutMs: leftMs }),
    };
    const results = await Promise.all(clients.map((client) => client.call(call)));
    // A timer may go off before its time, and leave too little for another call.
    const wantedMs = results.some((result) => !result.ok && result.isTimeout) ? shortestCallMs : 0;
    const isLast = options.wait !== true || io.clock.monotonicMs() + wantedMs >= endMs;
    const answers = results.map((result, index) => toAnswer(`${clients[index]?.url}`, result));
    const isSilent = answers.every(({ error }) => error !== undefined);
    if (results.some(isRefusal) || (isSilent && isLast)) {
      for (const result of results.filter((each) => !hasStatus(each))) {
        io.writeError(result.ok ? formatRefusal(result.answer) : `error: ${result.message}\n`);
      }
      return exitCodes.trouble;
    }
    const verdict = judgeAnswers(answers, question);
    if (!isSilent && (verdict.exitCode !== exitCodes.pending || isLast)) {
      const unmatched = await Promise.all((options.workerDebug ?? []).map(readUnmatchedPage));
      print({ answers, verdict, unmatched }, options, io);
      return verdict.exitCode;
    }
    note(isSilent ? `for an answer: ${answers[0]?.error}` : escapeText(verdict.text));
    await pause(io, Math.min(pauseMs, Math.max(0, endMs - io.clock.monotonicMs())));
  }
}

function toAnswer(url: string, result: AdminCallResult): Answer {
  if (!result.ok) return { url, error: result.message.split('\n', 1)[0] ?? '' };
  const { status, value } = result.answer;
  return status === 200
    ? { url, status: value as StatusJson }
    : { url, error: `the admin API at ${url} answers HTTP ${status}` };
}

function hasStatus(result: AdminCallResult): boolean {
  return result.ok && result.answer.status === 200;
}

/** A control plane that restarts gives no answer for a moment, or a proxy gives one; a
 * refusal is for ever. */
function isRefusal(result: AdminCallResult): boolean {
  return result.ok && !hasStatus(result) && !awayStatuses.includes(result.answer.status);
}

interface Shown {
  readonly answers: readonly Answer[];
  readonly verdict: Verdict;
  readonly unmatched: readonly UnmatchedPage[];
}

function print({ answers, verdict, unmatched }: Shown, { json }: StatusOptions, io: CommandIo) {
  if (json) {
    const pages = unmatched.map(({ worker, lines = null, error = null }) => ({
      worker,
      lines,
      error,
    }));
    const shown = {
      ...toJson(answers, verdict),
      ...(unmatched.length > 0 && { unmatched: pages }),
    };
    io.write(`${JSON.stringify(shown, undefined, 2)}\n`);
    return;
  }
  const { exitCode, text } = verdict;
  if (exitCode === exitCodes.trouble) io.writeError(`error: ${escapeText(text)}\n`);
  else io.write(`${escapeText(text)}\n`);
  const known = answers.flatMap(({ status }) => status ?? []);
  const warnings = known.flatMap(({ disagreements }) => disagreements.map(toWarning));
  for (const warning of new Set(warnings)) io.writeError(warning);
  if (exitCode === exitCodes.invalid) {
    const problems = known.find((status) => status.verdict === 'invalid')?.newest?.problems ?? [];
    const errors = problems.filter(({ severity }) => severity === 'error');
    if (errors.length > 0) io.writeError(`${formatProblems(errors.map(fromProblemJson))}\n`);
  }
  for (const { worker, lines, error } of unmatched) {
    if (lines === undefined)
      io.writeError(`warning: worker ${worker}: ${escapeText(`${error}`)}\n`);
    else io.write(`worker ${worker}:\n${lines.map((line) => `  ${escapeText(line)}\n`).join('')}`);
  }
}

/** One control plane's answer as it gave it; of several the verdict, and what each gave. */
function toJson(answers: readonly Answer[], { verdict, text }: Verdict): object {
  const [first, ...others] = answers;
  if (first?.status !== undefined && others.length === 0) {
    return { ...first.status, verdict, text };
  }
  const controlPlanes = answers.map(({ url, status = null, error = null }) => ({
    url,
    error,
    status,
  }));
  return { verdict, text, controlPlanes };
}

/** One line; nodes choose their names. */
function toWarning({ group, count, agreements }: DisagreementJson): string {
  const kinds = agreements.map(({ agreement, workers, example }) => {
    const name = `${toExcerpt(example.id)} at ${example.address}`;
    return `${workers} ${workers === 1 ? 'has' : 'have'} agreement ${agreement} (${workers === 1 ? name : `one is ${name}`})`;
  });
  const rest = count - agreements.length;
  if (rest > 0) kinds.push(`there are ${rest} more`);
  const where = group === null ? '' : ` of node group '${group}'`;
  const text = `workers${where} count differently, because their settings differ: ${kinds.join(', ')}; /status on their debug ports lists what has to be the same`;
  return `warning: ${escapeText(text)}\n`;
}

function pause({ clock }: CommandIo, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}
