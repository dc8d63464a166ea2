// `status`: is the newest revision in force everywhere? One line and an exit code.
import { parseDuration } from '../../shared/duration.ts';
import { escapeText } from '../../shared/rules/escaped-text.ts';
import { formatProblems } from '../../shared/rules/problem-text.ts';
import { toExcerpt } from '../../shared/rules/text-excerpt.ts';
import type { DisagreementJson } from '../admin/agreement-report.ts';
import { fromProblemJson } from '../admin/problem-json.ts';
import type { StatusJson } from '../admin/status-report.ts';
import type { AdminCallResult, AdminClient } from './admin/admin-client.ts';
import { type AdminOptions, addAdminOptions, openAdminClient } from './admin/admin-options.ts';
import { formatRefusal } from './admin/answer-text.ts';
import { type AddCommand, type CommandIo, type ExitCode, exitCodes } from './command-frame.ts';
import { startProgress } from './progress.ts';
import { parseDebugUrl, readUnmatchedPage, type UnmatchedPage } from './status/unmatched-page.ts';

interface StatusOptions extends AdminOptions {
  readonly revision?: string;
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
const shortestRevision = 6;

export const addStatus: AddCommand = (program, { io, finish }) => {
  const command = program
    .command('status')
    .summary('is the newest revision in force on every connected worker?')
    .description(
      'Asks a control plane for the newest revision and for what every connected worker has, and answers in one line.',
    );
  addAdminOptions(command)
    .option('--revision <id>', 'ask for this revision: it has to be the newest one')
    .option('--wait', 'wait until the answer is yes, or the revision is invalid')
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
  2  wrong usage, or the admin API gives no answer
  3  not yet, or not everywhere
  4  the newest revision is invalid; workers keep what they have

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
      const { revision } = options;
      if (revision !== undefined && revision.length < shortestRevision) {
        const message = `error: --revision needs at least ${shortestRevision} characters`;
        command.error(message, { exitCode: exitCodes.trouble });
      }
      const opened = await openAdminClient(options, io.environment);
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
      finish(await answer(opened.client, options, timeout.ms, io, note));
      stopProgress();
    });

  function parseWorker(text: string): URL {
    const url = parseDebugUrl(text);
    if (url !== undefined) return url;
    const message = `error: --worker-debug '${text}': expected the address of a debug port, such as 127.0.0.1:6070`;
    return command.error(message, { exitCode: exitCodes.trouble });
  }
};

async function answer(
  client: AdminClient,
  options: StatusOptions,
  timeoutMs: number,
  io: CommandIo,
  note: (waitsFor: string) => void,
): Promise<ExitCode> {
  const endMs = io.clock.monotonicMs() + timeoutMs;
  for (let asked = 0; ; asked++) {
    const look = asked % asksPerLook === 0;
    const leftMs = Math.max(shortestCallMs, endMs - io.clock.monotonicMs());
    const result = await client.call({
      method: 'GET',
      path: `/status?look=${look}`,
      ...(options.wait === true && { timeoutMs: leftMs }),
    });
    // A timer may go off before its time, and leave too little for another call.
    const wantedMs = !result.ok && result.isTimeout ? shortestCallMs : 0;
    const isLast = options.wait !== true || io.clock.monotonicMs() + wantedMs >= endMs;
    if (result.ok && result.answer.status === 200) {
      const status = result.answer.value as StatusJson;
      const exitCode = judge(status, options.revision);
      if (exitCode !== exitCodes.pending || isLast) {
        const unmatched = await Promise.all((options.workerDebug ?? []).map(readUnmatchedPage));
        print({ status, unmatched }, options, io, exitCode);
        return exitCode;
      }
      note(toLine(status, options.revision));
    } else if (isLast || isRefusal(result)) {
      io.writeError(result.ok ? formatRefusal(result.answer) : `error: ${result.message}\n`);
      return exitCodes.trouble;
    } else {
      note(result.ok ? `for the admin API, now HTTP ${result.answer.status}` : result.message);
    }
    await pause(io, Math.min(pauseMs, Math.max(0, endMs - io.clock.monotonicMs())));
  }
}

/** A control plane that restarts gives no answer for a moment, or a proxy gives one; a
 * refusal is for ever. */
function isRefusal(result: AdminCallResult): boolean {
  return result.ok && !awayStatuses.includes(result.answer.status);
}

function judge({ verdict, newest }: StatusJson, revision: string | undefined): ExitCode {
  const isAsked = revision === undefined || newest?.id.startsWith(revision) === true;
  if (!isAsked) return exitCodes.pending;
  if (verdict === 'invalid') return exitCodes.invalid;
  return verdict === 'in_force' ? exitCodes.ok : exitCodes.pending;
}

function print(
  { status, unmatched }: { status: StatusJson; unmatched: readonly UnmatchedPage[] },
  { json, revision }: StatusOptions,
  io: CommandIo,
  exitCode: ExitCode,
): void {
  if (json) {
    const pages = unmatched.map(({ worker, lines = null, error = null }) => ({
      worker,
      lines,
      error,
    }));
    const shown = unmatched.length === 0 ? status : { ...status, unmatched: pages };
    io.write(`${JSON.stringify(shown, undefined, 2)}\n`);
    return;
  }
  io.write(`${toLine(status, revision)}\n`);
  for (const disagreement of status.disagreements) io.writeError(toWarning(disagreement));
  const errors = status.newest?.problems.filter(({ severity }) => severity === 'error') ?? [];
  if (exitCode === exitCodes.invalid && errors.length > 0) {
    io.writeError(`${formatProblems(errors.map(fromProblemJson))}\n`);
  }
  for (const { worker, lines, error } of unmatched) {
    if (lines === undefined)
      io.writeError(`warning: worker ${worker}: ${escapeText(`${error}`)}\n`);
    else io.write(`worker ${worker}:\n${lines.map((line) => `  ${escapeText(line)}\n`).join('')}`);
  }
}

function toLine(status: StatusJson, revision: string | undefined): string {
  const isOther = revision !== undefined && status.newest?.id.startsWith(revision) !== true;
  return escapeText((isOther ? `revision ${revision} is not the newest: ` : '') + status.text);
}

/** One line; nodes choose their names. */
function toWarning({ group, count, agreements }: DisagreementJson): string {
  const kinds = agreements.map(({ agreement, workers, example }) => {
    const name = `${toExcerpt(example.id)} at ${example.address}`;
    return `${workers} ${workers === 1 ? 'has' : 'have'} ${agreement} (${workers === 1 ? name : `one is ${name}`})`;
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
