// All about one minute: its figures, earlier conditions that still lasted, and its events.
import { html } from 'htm/preact';
import type { ActivityJson } from '../../admin/controllers/activity.ts';
import type { HistoryJson, MarkJson } from '../../admin/controllers/traffic.ts';
import { markSigns, toMinute } from './chart.ts';
import { toClock, toNumber, toRate, toSentence, toShown, toTime } from './format.ts';
import { RevisionName } from './names.ts';
import { Badge, ReadingState, type Tone } from './parts.ts';
import { useResource } from './resource.ts';
import { hrefOf, withParams } from './route.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;

/** The minute in the address; undefined if absent. */
export function readMinute(params: URLSearchParams): string | undefined {
  const timeMs = Date.parse(params.get('at') ?? '');
  return Number.isNaN(timeMs) ? undefined : toMinute(new Date(timeMs).toISOString());
}

/** A time of today, or of yesterday if today's is in the future. */
export function AskMinute({ show }: { show(time: string): void }) {
  function submit(event: Event): void {
    event.preventDefault();
    const text = new FormData(event.target as HTMLFormElement).get('time');
    const [hours = 0, minutes = 0] = String(text).split(':').map(Number);
    const time = new Date();
    time.setHours(hours, minutes, 0, 0);
    const isToday = time.getTime() <= Date.now();
    show(new Date(isToday ? time.getTime() : time.getTime() - dayMs).toISOString());
  }
  return html`<form class="ask-minute" onSubmit=${submit}>
    <label>What happened at <input name="time" size="5" inputmode="numeric" autocomplete="off" required
      pattern="([01]?[0-9]|2[0-3]):[0-5][0-9]" placeholder="14:03" title="Hours and minutes, such as 14:03" /></label> <button type="submit">Show</button></form>`;
}

function toIso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

interface Happened {
  readonly at: string;
  readonly sign: readonly [Tone, string];
  readonly text: string;
  readonly revision: string | null;
}

interface MinuteProps {
  /** Its beginning. */
  readonly at: string;
  readonly params: URLSearchParams;
}

export function Minute({ at, params }: MinuteProps) {
  const startMs = Date.parse(at);
  const isLate = Date.now() - startMs < 14 * minuteMs;
  const history = useResource<HistoryJson>(`traffic?span=${isLate ? '15m' : '1h'}`, 'figures');
  const times = { since: toIso(startMs), until: toIso(startMs + minuteMs) };
  const query = new URLSearchParams({ ...times, limit: '200' });
  const activity = useResource<ActivityJson>(`activity?${query}`, 'revisions', 'figures');
  const { value } = history;
  const clock = toClock(startMs);

  function link(minutes: number): string {
    const other = toMinute(toIso(startMs + minutes * minuteMs));
    return hrefOf('fleet', withParams(params, { at: other }));
  }

  if (value === undefined || activity.value === undefined) {
    return html`<section class="panel"><h2>What happened at ${clock}</h2>
      <${ReadingState} of=${value === undefined ? history : activity} /></section>`;
  }
  const isWithin = ({ at: time }: { readonly at: string }) =>
    Date.parse(time) >= startMs && Date.parse(time) < startMs + minuteMs;
  const marks = value.marks.filter(isWithin);
  const happened = [...marks.map(ofMark), ...ofActivity(activity.value, marks)].sort(
    (a, b) => Date.parse(a.at) - Date.parse(b.at),
  );
  const pending = findPending(value.marks, startMs);
  return html`<section class="panel minute" aria-labelledby="minute">
    <div class="minute-head"><h2 id="minute">What happened at ${clock}</h2>
      <nav aria-label="Minutes"><a href=${link(-1)}>← ${toClock(startMs - minuteMs)}</a>
        ${startMs + minuteMs <= Date.now() && html`<a href=${link(1)}>${toClock(startMs + minuteMs)} →</a>`}
        <a href=${hrefOf('fleet', withParams(params, { at: '' }))}>Close</a></nav></div>
    <p>${toFiguresText(value, isWithin)}</p>
    ${pending.map(({ at: since, text }) => html`<p><${Badge} tone="bad">since ${toClock(Date.parse(since))}<//> ${toShown(text)}</p>`)}
    ${
      happened.length === 0
        ? html`<p class="quiet">No event is recorded for this minute.</p>`
        : html`<ol class="happened">${happened.map(
            ({ at: time, sign: [tone, sign], text, revision }) => html`<li key=${`${time} ${text}`}>
              <time datetime=${time}>${toTime(time).slice(11)}</time><span class=${`sign ${tone}`} aria-hidden="true">${sign}</span>
              <span>${toSentence(text)}${revision !== null && html` <${RevisionName} id=${revision} />`}</span></li>`,
          )}</ol>`
    }
  </section>`;
}

function ofMark({ at, kind, revision, text }: MarkJson): Happened {
  return { at, sign: markSigns[kind] ?? ['plain', '·'], text, revision };
}

/** Omits what a mark already shows. */
function ofActivity({ deeds }: ActivityJson, marks: readonly MarkJson[]): Happened[] {
  const isMarked = new Set(marks.map(({ text }) => text));
  return deeds
    .filter(({ who, what }) => !isMarked.has(what) && !isMarked.has(`${who}: ${what}`))
    .map(({ at, who, what, outcome, revision }) => {
      const isDone = outcome === 'done' || outcome === 'seen';
      return {
        at,
        sign: isDone ? (['plain', '·'] as const) : (['bad', '!'] as const),
        text: `${who === null ? '' : `${who}: `}${what}${isDone ? '' : `: not done: ${outcome}`}`,
        revision,
      };
    });
}

/** Earlier outages that still lasted. The text of a recovery begins with the outage's title. */
function findPending(marks: readonly MarkJson[], startMs: number): MarkJson[] {
  const before = marks.filter(({ at }) => Date.parse(at) < startMs);
  return before.filter(({ kind, text }, index) => {
    const title = text.slice(0, text.indexOf(':') + 1);
    const isOver = before
      .slice(index + 1)
      .some((later) => later.kind === 'recovered' && later.text.startsWith(title));
    return kind === 'outage' && !isOver;
  });
}

function toFiguresText(
  { slots, slotSeconds }: HistoryJson,
  isWithin: (slot: { readonly at: string }) => boolean,
): string {
  const own = slots.filter(isWithin);
  if (own.length === 0) return 'How many requests were decided is not known: no report covers it.';
  const rate = (field: 'decisions' | 'overLimit' | 'errors') =>
    toRate(own.reduce((sum, slot) => sum + slot[field], 0) / (own.length * slotSeconds));
  const seconds = own.length * slotSeconds;
  const part = seconds < 60 ? ` (${toNumber(seconds)} s of it are reported)` : '';
  return `${rate('decisions')} decisions/s, ${rate('overLimit')} over limit/s, ${rate('errors')} errors/s${part}.`;
}
