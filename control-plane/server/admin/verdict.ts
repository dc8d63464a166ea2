// Combines the answers of several control planes into one verdict, one line, one exit code. Pure.

import { toShortId } from '../store/revision.ts';
import { type AskedJson, type StatusJson, toReach } from './status-report.ts';

interface Answered {
  readonly url: string;
  readonly status: StatusJson;
  readonly error?: undefined;
}

/** One control plane's answer, or why there is none. */
export type Answer =
  | Answered
  | { readonly url: string; readonly status?: undefined; readonly error: string };

export interface Question {
  /** This revision, or one made from it, has to be the newest. */
  readonly revision: string | undefined;
  /** How many workers have to have it. */
  readonly minWorkers: number;
  /** Whether somebody has just approved the newest one: what holds it back is about to let it through. */
  readonly isApproved?: boolean;
}

export interface Verdict {
  /** `pending` may still become `yes`; the others are final. */
  readonly outcome: 'yes' | 'pending' | 'refused' | 'no_such_revision';
  readonly verdict: StatusJson['verdict'] | 'no_such_revision';
  /** One line; foreign text in it is not escaped. */
  readonly text: string;
}

export function judgeAnswers(answers: readonly Answer[], question: Question): Verdict {
  const { revision, minWorkers } = question;
  const known = answers.filter((answer) => answer.status !== undefined);
  const isOne = answers.length === 1;
  const say = ({ url, status }: Answered, text: string) =>
    isOne || speaksForAll(status) ? text : `${url}: ${text}`;
  const pending = (text: string): Verdict => ({
    outcome: 'pending',
    verdict: 'pending',
    text,
  });

  const newestIds = new Set(known.map(({ status }) => status.newest?.id));
  if (newestIds.size > 1) {
    const each = known.map(
      ({ url, status: { newest } }) => `${newest ? toShortId(newest.id) : 'none'} at ${url}`,
    );
    // Theirs may be newer or older: what is wrong with one is told, and decides nothing.
    const wrong = known
      .filter(({ status }) => isRefused(status))
      .map(({ url, status }) => `; ${url}: ${status.text}`);
    return pending(
      `the control planes differ about the newest revision: ${each.join(', ')}${wrong.join('')}`,
    );
  }
  const places = known.map(({ status }) => placeOf(status, revision));
  const isMeant = (index: number) => places[index] === 'newest' || places[index] === 'superseded';
  const difference = findDifference(known);
  // A revision that somebody has approved at one control plane is about to be let through by the others.
  const isLetThrough = known.some(({ status: { newest } }) => newest?.valid);
  const isOnItsWay = (status: StatusJson) =>
    status.verdict === 'held_back' &&
    (question.isApproved === true || (isLetThrough && isForRemoval(status)));
  const refused = known.find(
    ({ status }, index) => isRefused(status) && isMeant(index) && !isOnItsWay(status),
  );
  if (refused !== undefined) {
    const { verdict, text, controlPlanes } = refused.status;
    // A control plane that speaks for its peers has said it.
    const more = difference === undefined || controlPlanes.length > 0 ? '' : `; ${difference}`;
    const isSaidByAll = answers.every(({ status }) => status?.text === text);
    return {
      outcome: 'refused',
      verdict,
      text: `${isSaidByAll ? text : say(refused, text)}${more}`,
    };
  }
  const silent = answers.find(({ error }) => error !== undefined);
  const unsettled = known.filter(({ status }, index) => isUnsettled(status) || !isMeant(index));
  const late =
    unsettled.find(({ status }) => status.verdict === 'refused') ??
    unsettled.find(({ status }) => speaksForAll(status)) ??
    unsettled[0];
  if (silent !== undefined) {
    // It is told as well where the others stand, since they go on without this one.
    const more = difference ?? (late && say(late, late.status.text));
    const text = `not known: ${silent.error}${more === undefined ? '' : `; ${more}`}`;
    return { ...pending(text), verdict: 'not_known' };
  }
  if (places.every((place) => place === 'missing')) {
    const text = `no such revision: ${revision}`;
    return { outcome: 'no_such_revision', verdict: 'no_such_revision', text };
  }
  if (difference !== undefined) return pending(difference);
  if (late !== undefined) {
    const { verdict, text } = late.status;
    const place = placeOf(late.status, revision);
    const said = pending(say(late, placeTexts[place](`revision ${revision}`) + text));
    return verdict === 'refused' ? { ...said, verdict } : said;
  }
  const connected = known.reduce((sum, { status }) => sum + status.workers.connected, 0);
  const id = toShortId(known[0]?.status.newest?.id ?? '');
  const start = places.includes('superseded')
    ? `revision ${revision} was superseded by ${id}, which`
    : `revision ${id}`;
  const reach = `${start} ${toReach(connected)}`;
  const verdict = connected === 0 ? 'no_workers' : 'in_force';
  if (connected >= minWorkers) return { outcome: 'yes', verdict, text: reach };
  if (connected === 0) return { ...pending(reach), verdict };
  return pending(`${reach}, of at least ${minWorkers}`);
}

/**
 * The revision that each control plane serves, where they do not serve the same (behaviour:
 * different-control-planes).
 */
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

/** Of one that is held back: because it removes most limits. */
function isForRemoval({ newest }: StatusJson): boolean {
  return newest?.valid === false;
}

/** Somebody has to act before it is served. */
function isRefused({ verdict }: StatusJson): boolean {
  return verdict === 'invalid' || verdict === 'held_back' || verdict === 'taken_back';
}

/** The control plane that leads a rollout knows the workers of all. */
function speaksForAll({ rollout }: StatusJson): boolean {
  return rollout?.leader?.isThis === true;
}

/** Only the number of its workers is still open. */
function isUnsettled({ verdict }: StatusJson): boolean {
  return verdict !== 'in_force' && verdict !== 'no_workers';
}

/** An older control plane reports only the newest one. */
function placeOf({ asked, newest }: StatusJson, revision: string | undefined): AskedJson['place'] {
  if (revision === undefined || newest?.id.startsWith(revision)) return 'newest';
  return asked?.place ?? 'not_known';
}

const placeTexts: Readonly<Record<AskedJson['place'], (revision: string) => string>> = {
  newest: () => '',
  superseded: (revision) => `${revision} was superseded: `,
  apart: (revision) => `${revision} is not the newest, which was not made from it: `,
  missing: (revision) => `there is no ${revision}: `,
  not_known: (revision) => `${revision} is not known yet: `,
};
