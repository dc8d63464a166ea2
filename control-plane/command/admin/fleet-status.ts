// Asks a control plane whether the newest revision is in force everywhere, once or until it is.
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { type NoticeJson, toNotices, toNoticeText } from '../../server/admin/notices.ts';
import { fromProblemJson } from '../../server/admin/problem-json.ts';
import type { StatusJson } from '../../server/admin/status-report.ts';
import { toTrafficText } from '../../server/admin/traffic-json.ts';
import {
  judgeAnswers,
  type StatusRequirement,
  type StatusVerdict,
} from '../../server/admin/verdict.ts';
import type { AdminCallResult, AdminClient } from '../../server/admin-client.ts';
import { describeFewer } from '../../server/snapshot/served.ts';
import { type CommandIo, type ExitCode, exitCodes } from '../command-frame.ts';
import { startProgress } from '../progress.ts';
import { formatRefusal } from './answer-text.ts';

const pauseMs = 250;
/** While waiting, only one of this many requests polls the store itself. */
const asksPerCheck = 8;
/** A request gets at least this long, however little time is left. */
const shortestCallMs = 1_000;
/** Statuses of a proxy whose control plane is unreachable. */
const awayStatuses: readonly number[] = [502, 503, 504];

export interface FleetStatus {
  readonly status: StatusJson;
  readonly verdict: StatusVerdict;
}

export type FleetResult =
  | { readonly ok: true; readonly fleet: FleetStatus }
  /** It does not answer, or refuses: the reason, in several lines with their line breaks. */
  | { readonly ok: false; readonly message: string };

/** With `waitMs`, waits at most that long until the verdict is positive or final, and shows on standard error why it
 * waits. */
export async function askFleet(
  client: AdminClient,
  question: StatusRequirement,
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
      const isCheck = asked % asksPerCheck === 0;
      const leftMs = Math.max(shortestCallMs, endMs - io.clock.monotonicMs());
      const result = await client.call({
        method: 'GET',
        path: `/status?look=${isCheck}${query}`,
        ...(waitMs !== undefined && { timeoutMs: leftMs }),
      });
      // A timer may fire early, and leave too little time for another call.
      const wantedMs = !result.ok && result.isTimeout ? shortestCallMs : 0;
      const isLast = waitMs === undefined || io.clock.monotonicMs() + wantedMs >= endMs;
      const status = toStatus(result);
      if (status === undefined) {
        if (isRefusal(result) || isLast) return { ok: false, message: formatFailure(result) };
        waitsFor = `for an answer: ${toFailureText(client, result)}`;
      } else {
        const verdict = judgeAnswers([{ url: client.url, status }], question);
        if (verdict.outcome !== 'pending' || isLast)
          return { ok: true, fleet: { status, verdict } };
        waitsFor = escapeText(verdict.text);
      }
      await pause(io, Math.min(pauseMs, Math.max(0, endMs - io.clock.monotonicMs())));
    }
  } finally {
    stopProgress();
  }
}

function toStatus(result: AdminCallResult): StatusJson | undefined {
  return result.ok && result.answer.status === 200
    ? (result.answer.value as StatusJson)
    : undefined;
}

function formatFailure(result: AdminCallResult): string {
  return result.ok ? formatRefusal(result.answer) : `error: ${result.message}\n`;
}

function toFailureText({ url }: AdminClient, result: AdminCallResult): string {
  return result.ok
    ? `the admin API at ${url} answers HTTP ${result.answer.status}`
    : (result.message.split('\n', 1)[0] ?? '');
}

/** A restarting control plane does not answer for a moment, or a proxy answers for it; a refusal is final. */
function isRefusal(result: AdminCallResult): boolean {
  return result.ok && !awayStatuses.includes(result.answer.status);
}

const exitCodeOf: Readonly<Record<StatusVerdict['outcome'], ExitCode>> = {
  yes: exitCodes.ok,
  pending: exitCodes.pending,
  refused: exitCodes.invalid,
  no_such_revision: exitCodes.error,
};

export function toExitCode({ verdict }: FleetStatus): ExitCode {
  return exitCodeOf[verdict.outcome];
}

/** Human-readable: one line, warnings, and the problems of an invalid revision. */
export function writeFleetStatus({ status, verdict }: FleetStatus, io: CommandIo): void {
  const { outcome, text } = verdict;
  if (outcome === 'no_such_revision') io.writeError(`error: ${escapeText(text)}\n`);
  else io.write(`${escapeText(text)}\n`);
  io.write(toServedText(status));
  const { traffic, setAside = [], rolloutWarning } = status;
  // An older control plane does not report it.
  if (traffic) io.write(`${toTrafficText(traffic)}\n`);
  const nowMs = io.clock.wallMs();
  // A verdict about the rules' store already includes this notice.
  const notices = noticesOf(status)
    .filter(({ kind }) => kind !== 'rules_store_unreachable' || status.verdict !== 'pending')
    .map((each) => toNoticeText(each, nowMs));
  const aside = setAside.map((path) => `a file could not be read, and is kept as ${path}`);
  const foreseen = rolloutWarning == null ? [] : [rolloutWarning];
  const all = [...notices, ...toAwayTexts(status), ...toMemoryTexts(status), ...aside, ...foreseen];
  for (const warning of new Set(all)) io.writeError(`warning: ${escapeText(warning)}\n`);
  if (outcome === 'refused' && status.verdict === 'invalid') {
    const errors = (status.newest?.problems ?? []).filter(isError);
    if (errors.length > 0) io.writeError(`${formatProblems(errors.map(fromProblemJson))}\n`);
  }
}

/** The answer, with the verdict on the requested revision. */
export function toFleetJson({ status, verdict: { verdict, text } }: FleetStatus): object {
  return { ...status, verdict, text };
}

/** Which workers get fewer limits than others, or none; an older control plane does not report it. */
function toServedText({ inForce }: StatusJson): string {
  if (inForce?.fewer === undefined) return '';
  const { limits, fewer, fewerInAll = 0 } = inForce;
  if (limits === 0) return 'no worker gets any limit\n';
  const text = describeFewer({ limits, fewer, fewerInAll });
  return text === undefined ? '' : `${escapeText(text)}\n`;
}

/** An older control plane includes only the facts behind them. */
function noticesOf({ notices, disagreements, unenforced, store }: StatusJson): NoticeJson[] {
  if (notices !== undefined) return notices;
  const none = { workers: { connected: 0, gone: 0, reporting: 0 }, lastGoneAt: undefined };
  // Some older ones do not include the store.
  const known = store ?? { description: '', reachable: true, failingSince: null, error: null };
  const lists = { disagreements, unenforced: unenforced ?? [] };
  return toNotices([], { ...none, ...lists, store: known, stale: null });
}

/** Peers without an answer, if the verdict does not include them. */
function toAwayTexts({ verdict, controlPlanes = [] }: StatusJson): string[] {
  return verdict === 'not_known' ? [] : controlPlanes.flatMap(({ error }) => error ?? []);
}

/** Warnings that the control plane or a peer may lose verdicts; an older one reports neither. */
function toMemoryTexts({ memory, controlPlanes = [] }: StatusJson): string[] {
  const ofPeers = controlPlanes
    .filter(({ url, memoryProblem }) => url !== 'this' && memoryProblem != null)
    .map(({ url, memoryProblem }) => `${url}: ${memoryProblem}`);
  return [...(memory?.problem == null ? [] : [memory.problem]), ...ofPeers];
}

function pause({ clock }: CommandIo, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}
