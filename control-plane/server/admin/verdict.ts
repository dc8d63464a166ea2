// Combines the answers of several control planes into one verdict, one line, one exit code. Pure.

import { toShortId } from '../store/revision.ts';
import { type AskedJson, type StatusJson, toReach } from './status-report.ts';

interface Answered {
  readonly url: string;
  readonly status: StatusJson;
  readonly error?: undefined;
}

/** One control plane's answer, or why there is none. */
export type StatusAnswer =
  | Answered
  | { readonly url: string; readonly status?: undefined; readonly error: string };

export interface StatusRequirement {
  /** This revision, or one made from it, must be the newest. */
  readonly revision: string | undefined;
  /** The number of workers that must have it. */
  readonly minWorkers: number;
  /** Whether the newest revision was just approved: then it will soon no longer be held back. */
  readonly isApproved?: boolean;
}

export interface StatusVerdict {
  /** `pending` may still become `yes`; the others are final. */
  readonly outcome: 'yes' | 'pending' | 'refused' | 'no_such_revision';
  readonly verdict: StatusJson['verdict'] | 'no_such_revision';
  /** One line; foreign text in it is not escaped. */
  readonly text: string;
}

/** The first rule that returns a verdict decides. */
export function judgeAnswers(
  answers: readonly StatusAnswer[],
  question: StatusRequirement,
): StatusVerdict {
  const known = answers
    .filter((answer) => answer.status !== undefined)
    .map(
      (answer): KnownAnswer => ({ ...answer, place: positionOf(answer.status, question.revision) }),
    );
  const [difference, late] = [findDifference(known), findLate(known)];
  const all: Answers = { answers, known, question, difference, late };
  return (
    judgeNewest(all) ??
    judgeRefused(all) ??
    judgeUnanswered(all) ??
    judgeMissing(all) ??
    judgeDifference(all) ??
    judgeLate(all) ??
    judgeReach(all)
  );
}

/** A control plane that answers, and the position of the requested revision in its store. */
interface KnownAnswer extends Answered {
  readonly place: AskedJson['place'];
}

interface Answers {
  readonly answers: readonly StatusAnswer[];
  readonly known: readonly KnownAnswer[];
  readonly question: StatusRequirement;
  /** How the served revisions differ. */
  readonly difference: string | undefined;
  /** A control plane with workers that do not have the requested revision. */
  readonly late: KnownAnswer | undefined;
}

function pending(text: string): StatusVerdict {
  return { outcome: 'pending', verdict: 'pending', text };
}

/** Prefixed with the name of the control plane, if there are several and it reports only its own workers. */
function quote({ answers }: Answers, { url, status }: Answered, text: string): string {
  return answers.length === 1 || speaksForAll(status) ? text : `${url}: ${text}`;
}

/** The newest revision may differ between control planes: an error of one is shown, but decides nothing. */
function judgeNewest({ known }: Answers): StatusVerdict | undefined {
  if (new Set(known.map(({ status }) => status.newest?.id)).size <= 1) return undefined;
  const each = known.map(
    ({ url, status: { newest } }) => `${newest ? toShortId(newest.id) : 'none'} at ${url}`,
  );
  const errors = known
    .filter(({ status }) => isRefused(status))
    .map(({ url, status }) => `; ${url}: ${status.text}`);
  return pending(
    `the control planes differ about the newest revision: ${each.join(', ')}${errors.join('')}`,
  );
}

function judgeRefused(all: Answers): StatusVerdict | undefined {
  const { answers, known, question, difference } = all;
  // An approval at one control plane is followed by the others: where it has arrived, the revision is valid.
  const isApprovedSomewhere = known.some(({ status: { newest } }) => newest?.valid);
  const isApprovalOnItsWay = (status: StatusJson) =>
    status.verdict === 'held_back' &&
    (question.isApproved === true || (isApprovedSomewhere && isForRemoval(status)));
  const refused = known.find(
    (each) => isRefused(each.status) && isMeant(each) && !isApprovalOnItsWay(each.status),
  );
  if (refused === undefined) return undefined;
  const { verdict, text, controlPlanes } = refused.status;
  // The text of a control plane that speaks for its peers includes the difference.
  const more = difference === undefined || controlPlanes.length > 0 ? '' : `; ${difference}`;
  const isTextOfAll = answers.every(({ status }) => status?.text === text);
  const shown = isTextOfAll ? text : quote(all, refused, text);
  return { outcome: 'refused', verdict, text: `${shown}${more}` };
}

/** The text also includes the state of the others, since they continue without this one. */
function judgeUnanswered(all: Answers): StatusVerdict | undefined {
  const { answers, difference, late } = all;
  const silent = answers.find(({ error }) => error !== undefined);
  if (silent === undefined) return undefined;
  const more = difference ?? (late && quote(all, late, late.status.text));
  const text = `not known: ${silent.error}${more === undefined ? '' : `; ${more}`}`;
  return { ...pending(text), verdict: 'not_known' };
}

function judgeMissing({ known, question }: Answers): StatusVerdict | undefined {
  if (known.some(({ place }) => place !== 'missing')) return undefined;
  const text = `no such revision: ${question.revision}`;
  return { outcome: 'no_such_revision', verdict: 'no_such_revision', text };
}

function judgeDifference({ difference }: Answers): StatusVerdict | undefined {
  return difference === undefined ? undefined : pending(difference);
}

function judgeLate(all: Answers): StatusVerdict | undefined {
  const { late, question } = all;
  if (late === undefined) return undefined;
  const { verdict, text } = late.status;
  const place = positionTexts[late.place](`revision ${question.revision}`);
  const judged = pending(quote(all, late, place + text));
  return verdict === 'refused' ? { ...judged, verdict } : judged;
}

/** All control planes serve the revision: on how many workers. */
function judgeReach({ known, question: { revision, minWorkers } }: Answers): StatusVerdict {
  const connected = known.reduce((sum, { status }) => sum + status.workers.connected, 0);
  const id = toShortId(known[0]?.status.newest?.id ?? '');
  const start = known.some(({ place }) => place === 'superseded')
    ? `revision ${revision} was superseded by ${id}, which`
    : `revision ${id}`;
  const reach = `${start} ${toReach(connected)}`;
  const verdict = connected === 0 ? 'no_workers' : 'in_force';
  if (connected >= minWorkers) return { outcome: 'yes', verdict, text: reach };
  if (connected === 0) return { ...pending(reach), verdict };
  return pending(`${reach}, of at least ${minWorkers}`);
}

/** A control plane with a refusal, or else one that speaks for all. */
function findLate(known: readonly KnownAnswer[]): KnownAnswer | undefined {
  const unsettled = known.filter((each) => isUnsettled(each.status) || !isMeant(each));
  return (
    unsettled.find(({ status }) => status.verdict === 'refused') ??
    unsettled.find(({ status }) => speaksForAll(status)) ??
    unsettled[0]
  );
}

/** Whether the newest revision is the requested one, or was made from it. */
function isMeant({ place }: KnownAnswer): boolean {
  return place === 'newest' || place === 'superseded';
}

/** The revision that each control plane serves, if they differ (behaviour: different-control-planes). */
function findDifference(known: readonly Answered[]): string | undefined {
  const served = known.map(({ status: { inForce, rollout } }) =>
    JSON.stringify([inForce?.content, rollout?.revision]),
  );
  if (new Set(served).size <= 1 || known.some(({ status }) => !status.settled)) return undefined;
  const shown = known.map(({ status: { inForce, rollout } }) => {
    const trial = rollout === null ? '' : ` with ${toShortId(rollout.revision)} on trial`;
    return `${inForce === null ? 'nothing' : toShortId(inForce.id)}${trial}`;
  });
  const [first] = shown;
  if (shown.every((each) => each === first)) {
    const urls = known.map(({ url }) => url).join(', ');
    return `the control planes serve different rules of revision ${first}, because their settings or versions differ: ${urls}`;
  }
  const each = known.map(({ url }, index) => `${shown[index]} at ${url}`);
  return `the control planes serve different revisions: ${each.join(', ')}`;
}

/** Whether a revision that is held back waits because it removes most limits: one that cannot be divided into steps
 * waits as well, but is valid everywhere. */
function isForRemoval({ newest }: StatusJson): boolean {
  return newest?.valid === false;
}

/** The revision is not served until an operator acts. */
function isRefused({ verdict }: StatusJson): boolean {
  return verdict === 'invalid' || verdict === 'held_back' || verdict === 'taken_back';
}

/** The control plane that leads a rollout knows the workers of all. */
function speaksForAll({ rollout }: StatusJson): boolean {
  return rollout?.leader?.isThis === true;
}

/** Only the number of workers is still open. */
function isUnsettled({ verdict }: StatusJson): boolean {
  return verdict !== 'in_force' && verdict !== 'no_workers';
}

/** `not_known`: its answer does not locate the requested revision. */
function positionOf(
  { asked, newest }: StatusJson,
  revision: string | undefined,
): AskedJson['place'] {
  if (revision === undefined || newest?.id.startsWith(revision)) return 'newest';
  return asked?.place ?? 'not_known';
}

const positionTexts: Readonly<Record<AskedJson['place'], (revision: string) => string>> = {
  newest: () => '',
  superseded: (revision) => `${revision} was superseded: `,
  apart: (revision) => `${revision} is not the newest, which was not made from it: `,
  missing: (revision) => `there is no ${revision}: `,
  not_known: (revision) => `${revision} is not known yet: `,
};
