// Combines the answers of several control planes into one verdict, one line, one exit code. Pure.

import { toShortId } from '../store/revision.ts';
import { type AskedJson, type StatusJson, toReach } from './status-report.ts';

/** One control plane's answer, or why there is none. */
export type Answer =
  | { readonly url: string; readonly status: StatusJson; readonly error?: undefined }
  | { readonly url: string; readonly status?: undefined; readonly error: string };

export interface Question {
  /** This revision, or one made from it, has to be the newest. */
  readonly revision: string | undefined;
  /** How many workers have to have it. */
  readonly minWorkers: number;
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
  const say = (url: string, text: string) => (isOne ? text : `${url}: ${text}`);
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
    return pending(`the control planes differ about the newest revision: ${each.join(', ')}`);
  }
  const places = known.map(({ status }) => placeOf(status, revision));
  const isMeant = (index: number) => places[index] === 'newest' || places[index] === 'superseded';
  const refused = known.find(({ status }, index) => isRefused(status) && isMeant(index));
  if (refused !== undefined) {
    const text = say(refused.url, refused.status.text);
    return { outcome: 'refused', verdict: refused.status.verdict, text };
  }
  const silent = answers.find(({ error }) => error !== undefined);
  if (silent !== undefined) {
    return { ...pending(`not known: ${silent.error}`), verdict: 'not_known' };
  }
  if (places.every((place) => place === 'missing')) {
    const text = `no such revision: ${revision}`;
    return { outcome: 'no_such_revision', verdict: 'no_such_revision', text };
  }
  const late = known.find(({ status }, index) => isUnsettled(status) || !isMeant(index));
  if (late !== undefined) {
    const place = placeOf(late.status, revision);
    return pending(say(late.url, placeTexts[place](`revision ${revision}`) + late.status.text));
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

/** Somebody has to act before it is served. */
function isRefused({ verdict }: StatusJson): boolean {
  return verdict === 'invalid' || verdict === 'held_back' || verdict === 'taken_back';
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
