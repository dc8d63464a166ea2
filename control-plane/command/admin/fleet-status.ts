// Asks control planes whether the newest revision is in force everywhere, once or until it is. verdict.ts
// combines their answers.
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { type NoticeJson, toNotices, toNoticeText } from '../../admin/notices.ts';
import { fromProblemJson } from '../../admin/problem-json.ts';
import type { StatusJson } from '../../admin/status-report.ts';
import { mergeTraffic, toTrafficText } from '../../admin/traffic-json.ts';
import { type Answer, judgeAnswers, type Question, type Verdict } from '../../admin/verdict.ts';
import type { AdminCall, AdminCallResult, AdminClient } from '../../admin-client.ts';
import { describeFewer } from '../../snapshot/served-counts.ts';
import { type CommandIo, type ExitCode, exitCodes } from '../command-frame.ts';
import { startProgress } from '../progress.ts';
import { formatRefusal } from './answer-text.ts';

const pauseMs = 250;
/** While waiting, the store itself is queried only this often. */
const asksPerLook = 8;
/** However little time is left, a call gets at least this long. */
const shortestCallMs = 1_000;
/** Statuses of a proxy without a control plane behind it. */
const awayStatuses: readonly number[] = [502, 503, 504];

export interface FleetStatus {
  readonly answers: readonly Answer[];
  readonly verdict: Verdict;
}

export type FleetResult =
  | { readonly ok: true; readonly status: FleetStatus }
  /** None answers, or one refuses: why, for people, in several lines with their ends. */
  | { readonly ok: false; readonly message: string };

/**
 * With `waitMs`, waits at most that long until the answer is yes or cannot become yes, and shows on standard
 * error why it waits.
 */
export async function askFleet(
  clients: readonly AdminClient[],
  question: Question,
  waitMs: number | undefined,
  io: CommandIo,
): Promise<FleetResult> {
  let waitsFor = 'for an answer of the admin API';
  const stopProgress = startProgress(io, () => waitsFor);
  const endMs = io.clock.monotonicMs() + (waitMs ?? 0);
  const { revision } = question;
  const query = revision === undefined ? '' : `&revision=${encodeURIComponent(revision)}`;
  try {
    for (let asked = 0; ; asked++) {
      const look = asked % asksPerLook === 0;
      const leftMs = Math.max(shortestCallMs, endMs - io.clock.monotonicMs());
      const call: AdminCall = {
        method: 'GET',
        path: `/status?look=${look}${query}`,
        ...(waitMs !== undefined && { timeoutMs: leftMs }),
      };
      const results = await Promise.all(clients.map((client) => client.call(call)));
      // A timer may fire early, and leave too little time for another call.
      const wantedMs = results.some((result) => !result.ok && result.isTimeout)
        ? shortestCallMs
        : 0;
      const isLast = waitMs === undefined || io.clock.monotonicMs() + wantedMs >= endMs;
      const answers = results.map((result, index) => toAnswer(`${clients[index]?.url}`, result));
      const isSilent = answers.every(({ error }) => error !== undefined);
      if (results.some(isRefusal) || (isSilent && isLast)) {
        const failures = results.filter((each) => !hasStatus(each)).map(formatFailure);
        return { ok: false, message: failures.join('') };
      }
      const verdict = judgeAnswers(answers, question);
      if (!isSilent && (verdict.outcome !== 'pending' || isLast)) {
        return { ok: true, status: { answers, verdict } };
      }
      waitsFor = isSilent ? `for an answer: ${answers[0]?.error}` : escapeText(verdict.text);
      await pause(io, Math.min(pauseMs, Math.max(0, endMs - io.clock.monotonicMs())));
    }
  } finally {
    stopProgress();
  }
}

function formatFailure(result: AdminCallResult): string {
  return result.ok ? formatRefusal(result.answer) : `error: ${result.message}\n`;
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

/** A restarting control plane does not answer for a moment, or a proxy answers for it; a refusal is final. */
function isRefusal(result: AdminCallResult): boolean {
  return result.ok && !hasStatus(result) && !awayStatuses.includes(result.answer.status);
}

const exitCodeOf: Readonly<Record<Verdict['outcome'], ExitCode>> = {
  yes: exitCodes.ok,
  pending: exitCodes.pending,
  refused: exitCodes.invalid,
  no_such_revision: exitCodes.trouble,
};

export function toExitCode({ verdict }: FleetStatus): ExitCode {
  return exitCodeOf[verdict.outcome];
}

/** Human-readable: one line, warnings, and what is wrong with an invalid revision. */
export function writeFleetStatus({ answers, verdict }: FleetStatus, io: CommandIo): void {
  const { outcome, text } = verdict;
  if (outcome === 'no_such_revision') io.writeError(`error: ${escapeText(text)}\n`);
  else io.write(`${escapeText(text)}\n`);
  const known = answers.flatMap(({ status }) => status ?? []);
  const traffic = mergeTraffic(known.map((status) => status.traffic));
  for (const served of new Set(known.flatMap(toServedText))) io.write(served);
  if (traffic !== null) io.write(`${toTrafficText(traffic)}\n`);
  const nowMs = io.clock.wallMs();
  // Where the verdict is about the store of the rules, it says it.
  const notices = known.flatMap((status) =>
    noticesOf(status)
      .filter(({ kind }) => kind !== 'rules_store_unreachable' || status.verdict !== 'pending')
      .map((each) => `warning: ${escapeText(toNoticeText(each, nowMs))}\n`),
  );
  const memory = answers.flatMap(toMemoryTexts);
  const away = known.flatMap(toAwayTexts);
  const foreseen = known.flatMap(({ rolloutWarning }) =>
    rolloutWarning == null ? [] : `warning: ${escapeText(rolloutWarning)}\n`,
  );
  const aside = known.flatMap(({ setAside = [] }) =>
    setAside.map(
      (path) => `warning: a file could not be read, and is kept as ${escapeText(path)}\n`,
    ),
  );
  const all = [...notices, ...away, ...memory, ...aside, ...foreseen];
  for (const warning of new Set(all)) {
    io.writeError(warning);
  }
  if (outcome === 'refused') {
    const problems = known.find((status) => status.verdict === 'invalid')?.newest?.problems ?? [];
    const errors = problems.filter(isError);
    if (errors.length > 0) io.writeError(`${formatProblems(errors.map(fromProblemJson))}\n`);
  }
}

/** The answer of one control plane unchanged; of several the verdict, and the answer of each. */
export function toFleetJson({ answers, verdict: { verdict, text } }: FleetStatus): object {
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

/** Which workers get fewer limits than others, or none; an older control plane does not report it. */
function toServedText({ inForce }: StatusJson): string[] {
  if (inForce?.fewer === undefined) return [];
  const { limits, fewer, fewerInAll = 0 } = inForce;
  if (limits === 0) return ['no worker gets any limit\n'];
  const text = describeFewer({ limits, fewer, fewerInAll });
  return text === undefined ? [] : [`${escapeText(text)}\n`];
}

/** An older control plane tells only what they are made of. */
function noticesOf({ notices, disagreements, unenforced, store }: StatusJson): NoticeJson[] {
  if (notices !== undefined) return notices;
  const none = { workers: { connected: 0, gone: 0, reporting: 0 }, lastGoneAt: undefined };
  // One of them tells nothing of its store.
  const known = store ?? { description: '', reachable: true, failingSince: null, error: null };
  const lists = { disagreements, unenforced: unenforced ?? [] };
  return toNotices([], { ...none, ...lists, store: known, stale: null });
}

/** Peers without an answer, where the verdict does not say so. */
function toAwayTexts({ verdict, controlPlanes }: StatusJson): string[] {
  if (verdict === 'not_known') return [];
  // An older control plane names none.
  return (controlPlanes ?? []).flatMap(({ error }) =>
    error === null ? [] : `warning: ${escapeText(error)}\n`,
  );
}

/** The warnings of the control plane that was asked, and of its peers, that they may forget verdicts. */
function toMemoryTexts({ url, status }: Answer, _: number, answers: readonly Answer[]): string[] {
  if (status === undefined) return [];
  // An older control plane tells neither.
  const peers = (status.controlPlanes ?? []).filter((each) => each.url !== 'this');
  const all = [
    { url: answers.length === 1 ? undefined : url, memoryProblem: status.memory?.problem },
    ...peers,
  ];
  return all.flatMap(({ url, memoryProblem }) =>
    memoryProblem == null
      ? []
      : `warning: ${escapeText(`${url === undefined ? '' : `${url}: `}${memoryProblem}`)}\n`,
  );
}

function pause({ clock }: CommandIo, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}
