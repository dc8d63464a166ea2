// `/lifts`: lifts the limits of given descriptors for a time, and ends a lift early. A lift is a rule with an end in
// the domain's file (lift.ts).
import Type from 'typebox';
import { parseDuration } from '../../../../shared/duration.ts';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import { escapeText } from '../../../../shared/rules/problem/escaped-text.ts';
import { parseTime, toTimeText } from '../../../../shared/rules/rule-end.ts';
import { toExcerpt } from '../../../../shared/text-excerpt.ts';
import { orNull } from '../../api-shape.ts';
import { countersAsked } from '../../fleet/counter-answers.ts';
import type { Revision } from '../../store/revision.ts';
import type { Change } from '../../store/store.ts';
import { AdminController } from '../admin-controller.ts';
import { findDomainFiles, findUnreadFile } from '../domain-file.ts';
import type { Examination } from '../examination.ts';
import { toRuleNames } from '../lift.ts';
import { planLiftsApart } from '../lift-job.ts';
import { refusedRules } from '../problem-json.ts';

/** In milliseconds. Below the limit of `until`, for workers whose clocks are slow. */
const longestLiftMs = 365 * 86_400_000;
/** The most characters of a reason in the file. */
const maxCommentLength = 300;

const liftJson = Type.Object(
  {
    revision: Type.String(),
    domain: Type.String(),
    rules: Type.String({ description: 'The names of the rules that lift, or have lifted' }),
    until: orNull(Type.String({ description: 'RFC 3339; null where the lifts have ended' })),
  },
  { title: 'Lift' },
);

export type LiftJson = Type.Static<typeof liftJson>;

const { domain, descriptors } = countersAsked;

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Lift the limits of descriptors for a time, or end that early',
    description:
      'Writes an unlimited rule with an end for exactly each descriptor into the file of its domain; a second lift of the same descriptor moves the end. Rules of the file that have ended are taken out. All workers get it at once, also where revisions are rolled out in steps. 404 where no rule matches a descriptor, with the nearest one; 409 where the newest revision is not in force.',
    body: Type.Object({
      domain,
      descriptors,
      for: Type.Optional(
        Type.String({ maxLength: 64, description: 'How long, such as 1h; at most 8760h, a year' }),
      ),
      until: Type.Optional(
        Type.String({ maxLength: 64, description: 'In place of `for`: RFC 3339 with an offset' }),
      ),
      end: Type.Optional(
        Type.Boolean({ description: 'In place of both: the lifts of the descriptors end now' }),
      ),
      reason: Type.String({
        minLength: 1,
        maxLength: 4096,
        description: 'For the audit log, the history and the file',
      }),
    }),
    returns: { 200: liftJson },
    failures: { 404: undefined, 409: undefined, 422: refusedRules, 503: undefined },
  });

  async POST({ domain, descriptors, reason, ...ends }: Fields<typeof Default.POST>) {
    const rules = toRuleNames(domain, descriptors);
    const clockProblem = this.api.clockProblem();
    if (clockProblem !== undefined && !ends.end) {
      throw new HttpError(409, { detail: `no lift is made: ${clockProblem}` });
    }
    let untilMs: number | undefined;
    let done = '';
    const made = await this.change(`lift ${rules}: ${reason}`, async () => {
      const nowMs = this.api.clock.wallMs();
      untilMs = readEnd(ends, nowMs);
      const text = toOneLine(reason);
      const what =
        untilMs === undefined
          ? `end the lift of ${rules}: ${text}`
          : `lift ${rules} until ${toTimeText(untilMs)}: ${text}`;
      const who = this.api.callerOf(this.request);
      done = `${who}: ${what}`;
      const comment = toExcerpt(`lifted by ${toOneLine(who)}: ${text}`, maxCommentLength);
      return {
        what,
        message: `${what.charAt(0).toUpperCase()}${what.slice(1)}`,
        expectedRevision: undefined,
        toleratesOldErrors: false,
        // A lift removes no other limit, but in a domain with one limit that is most of them.
        allowsRemoval: true,
        rollout: 'now',
        plan: async (current, examination): Promise<Change> => {
          this.refuseUnproven(current);
          const files = this.findFiles(current, examination, domain);
          const asked = { domain, descriptors, untilMs, comment, nowMs };
          return { put: await planLiftsApart(this.api.thread, files, asked), delete: [] };
        },
      };
    });
    this.api.marks.note({ kind: 'lift', revision: made.after.id, text: done });
    const until = untilMs === undefined ? null : toTimeText(untilMs);
    return { revision: made.after.id, domain, rules, until };
  }

  /** A lift reaches all workers at once, together with everything else in its revision. */
  private refuseUnproven(current: Revision): void {
    const { inForce, trial } = this.api.snapshots.state();
    const id = current.id;
    if (inForce?.revision.id === id) return;
    const why =
      trial?.revision.id === id
        ? 'is on trial with some workers: promote or abort its rollout first'
        : 'is not in force: repair, approve or roll it back first';
    const detail = `a lift reaches all workers at once, and the newest revision ${id} would with it, but that ${why}`;
    throw new HttpError(409, { detail });
  }

  private findFiles(current: Revision, { documents }: Examination, domain: string) {
    const { documents: documentsInForce } = this.api.snapshots;
    const unread = findUnreadFile(current, documentsInForce, domain);
    if (unread !== undefined) {
      const detail = `${unread.path} cannot be read (${unread.reason}): repair it first`;
      throw new HttpError(409, { detail });
    }
    const files = findDomainFiles(current, documents, documentsInForce, domain);
    if (files.length > 0) return files;
    throw new HttpError(404, { detail: `there is no domain ${domain}` });
  }
}

/** Wall time in milliseconds, whole seconds; undefined if the lift is to end now. */
function readEnd(
  { for: span, until, end }: Pick<Fields<typeof Default.POST>, 'for' | 'until' | 'end'>,
  nowMs: number,
): number | undefined {
  const given = [span, until, end ? true : undefined].filter((each) => each !== undefined);
  if (given.length !== 1) {
    throw refuse('a lift needs an end: one of for (such as 1h), until (a time), and end: true');
  }
  if (end) return undefined;
  const untilMs = span === undefined ? readTime(until ?? '') : nowMs + readSpan(span);
  if (untilMs <= nowMs)
    throw refuse(`until ${toTimeText(untilMs)} is in the past: a lift has to end later`);
  if (untilMs > nowMs + longestLiftMs) {
    throw refuse(`a lift lasts at most 8760h, a year: ${span ?? until} is longer`);
  }
  return Math.ceil(untilMs / 1000) * 1000;
}

function readTime(text: string): number {
  const ms = parseTime(text);
  if (ms !== undefined) return ms;
  throw refuse(
    `until '${toExcerpt(text)}' is not a time with an offset, such as 2026-11-24T18:00:00Z`,
  );
}

function readSpan(text: string): number {
  const parsed = parseDuration(text);
  if (!parsed.ok)
    throw refuse(`for '${toExcerpt(text)}' is not a duration, such as 1h: ${parsed.reason}`);
  if (parsed.ms > 0) return Math.min(parsed.ms, 2 * longestLiftMs);
  throw refuse(`for '${toExcerpt(text)}' is too short: a lift has to last longer than zero`);
}

function refuse(detail: string): HttpError {
  return new HttpError(400, { detail });
}

/** For a comment and a message, in which a second line could be misread as something else. */
function toOneLine(text: string): string {
  return escapeText(text.replaceAll(/\s+/g, ' ').trim());
}
