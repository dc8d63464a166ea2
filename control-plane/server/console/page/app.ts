// The frame around the pages: the login, the navigation, and whether the page is live.
import { html } from 'htm/preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import type { StatusJson } from '../../admin/status-report.ts';
import { ActivityPage } from './activity-page.ts';
import { ask, readToken, storeToken } from './api.ts';
import { ChangePage } from './change-page.ts';
import { FleetPage } from './fleet-page.ts';
import { toClock, toSentence, toShortId, toShown } from './format.ts';
import { KeysButton } from './keys.ts';
import { LimitedPage } from './limited-page.ts';
import { type LiveState, listenToState, startLive, stopLive } from './live.ts';
import { Login } from './login.ts';
import { isUnenforced, Notices, OtherPlanes } from './notices.ts';
import { Badge, Empty, Notice, Page, Skeleton, type Tone } from './parts.ts';
import { type Failure, forgetAnswers, type Resource, useResource } from './resource.ts';
import { RevisionsPage } from './revisions-page.ts';
import { hrefOf, useRoute } from './route.ts';
import { RulePage } from './rule-page.ts';
import { RulesPage } from './rules-page.ts';
import { SearchButton } from './search.ts';
import { type Session, SessionContext } from './session.ts';
import { ThemeSwitch } from './theme.ts';
import { TryPage } from './try-page.ts';
import { UnmatchedPage } from './unmatched-page.ts';
import { WhyPage } from './why-page.ts';
import { WorkerPage } from './worker-page.ts';

/** `showsWorkers`: whether it shows individual workers, which the status then includes. */
const pages = [
  { name: 'fleet', title: 'Fleet', component: FleetPage, showsWorkers: true },
  { name: 'rules', title: 'Rules', component: RulesPage, showsWorkers: false },
  { name: 'limited', title: 'Who is limited', component: LimitedPage, showsWorkers: false },
  { name: 'unmatched', title: 'Unmatched', component: UnmatchedPage, showsWorkers: false },
  { name: 'revisions', title: 'Revisions', component: RevisionsPage, showsWorkers: true },
  { name: 'activity', title: 'Activity', component: ActivityPage, showsWorkers: false },
  { name: 'try', title: 'Try a request', component: TryPage, showsWorkers: false },
] as const;

/** Pages about a single item, below the page that lists it. */
const details = [
  { name: 'worker', within: 'fleet', component: WorkerPage, showsWorkers: true },
  { name: 'rule', within: 'rules', component: RulePage, showsWorkers: false },
  { name: 'change', within: 'rules', component: ChangePage, showsWorkers: false },
  { name: 'why', within: 'limited', component: WhyPage, showsWorkers: false },
] as const;

const tones: Readonly<Record<StatusJson['verdict'], Tone>> = {
  in_force: 'good',
  no_workers: 'wait',
  pending: 'wait',
  refused: 'bad',
  held_back: 'bad',
  taken_back: 'bad',
  invalid: 'bad',
  not_known: 'bad',
};

const verdicts: Readonly<Record<StatusJson['verdict'], string>> = {
  in_force: 'in force',
  no_workers: 'no workers',
  pending: 'pending',
  refused: 'refused',
  held_back: 'held back',
  taken_back: 'taken back',
  invalid: 'invalid',
  not_known: 'not known',
};

/** One line; the page with the details has the whole text. */
function toHeadline({ verdict, newest, rollout, text }: StatusJson): string {
  const isOfRollout =
    verdict === 'pending' || (verdict === 'refused' && rollout?.phase === 'paused');
  if (!isOfRollout || rollout === null) return text;
  const { revision, step, steps, reach, phase, text: reason } = rollout;
  if (revision !== newest?.id || phase === 'taking_back') return text;
  const pause = reason.startsWith('paused') ? reason : `paused: ${reason}`;
  const why = phase === 'paused' ? `; ${pause}` : '';
  return `revision ${toShortId(revision)} is being rolled out: step ${step} of ${steps}, ${reach}${why}`;
}

/** The page with the details. */
function detailsOf({ verdict, rollout, memory }: StatusJson): string {
  const isOfRevisions = ['held_back', 'taken_back', 'invalid'].includes(verdict);
  const isRolledOut = rollout !== null || memory.problem !== null;
  return isOfRevisions || isRolledOut ? 'revisions' : 'fleet';
}

/** No data is requested until the user is known to have access. */
export function App() {
  const [session, setSession] = useState<Session | undefined>(undefined);
  const [problem, setProblem] = useState<Failure | undefined>(undefined);

  const enter = useCallback(async () => {
    const answer = await ask<Session>('access');
    setProblem(answer.ok ? undefined : answer);
    setSession(answer.ok ? answer.value : undefined);
    if (answer.ok) startLive();
    else if (answer.status === 0) setTimeout(() => void enter(), 5_000);
  }, []);
  useEffect(() => {
    void enter();
    return stopLive;
  }, [enter]);

  function leave(): void {
    stopLive();
    storeToken(undefined);
    forgetAnswers();
    setSession(undefined);
    void enter();
  }

  if (session !== undefined) {
    return html`<${SessionContext.Provider} value=${session}>
      <${Frame} session=${session} leave=${leave} />
    <//>`;
  }
  if (problem === undefined) return html`<div class="alone"><${Skeleton} /></div>`;
  if (problem.status === 401)
    return html`<${Login} enter=${enter} wrong=${readToken() !== null} />`;
  return html`<main class="alone">
    <h1>Ratelane</h1>
    <${Notice} tone="bad"><strong>${toSentence(problem.text)}.</strong>
      ${problem.status === 0 ? ' Retrying every five seconds.' : ''}<//>
  </main>`;
}

interface FrameProps {
  readonly session: Session;
  leave(): void;
}

function Frame({ session, leave }: FrameProps) {
  const { page, params } = useRoute();
  const detail = details.find(({ name }) => name === page);
  const current = detail ?? pages.find(({ name }) => name === page);
  // One answer for both the headline and the workers below it, so that they never contradict each other.
  const withWorkers = current?.showsWorkers === true;
  const detailed = useResource<StatusJson>(
    withWorkers ? 'status?workers=true' : undefined,
    'state',
    'figures',
  );
  const summary = useResource<StatusJson>(withWorkers ? undefined : 'status', 'state', 'figures');
  const asked = withWorkers ? detailed : summary;
  const isDetailed = detailed.value !== undefined && (withWorkers || detailed.atMs > summary.atMs);
  const { value, atMs } = isDetailed ? detailed : summary;
  const status = { ...asked, value, atMs };
  const [live, setLive] = useState<LiveState>('connecting');
  useEffect(() => listenToState(setLive), []);
  const { problem } = asked;
  // The token was removed from the file, or the control plane has a different one now.
  const isShutOut = problem?.status === 401;
  useEffect(() => {
    if (isShutOut) leave();
  }, [isShutOut]);
  return html`
    <a class="skip" href="#main" onClick=${(event: Event) => {
      event.preventDefault();
      document.getElementById('main')?.focus();
    }}>Skip to the page</a>
    <div class="frame">
      <aside>
        <a class="brand" href=${hrefOf('fleet')}><img src="page/icon.svg" alt="" width="26" height="26" />Ratelane</a>
        <nav aria-label="Pages">
          ${pages.map(
            ({ name, title }) =>
              html`<a href=${hrefOf(name)} aria-current=${name === page ? 'page' : name === detail?.within ? 'true' : undefined}>${title}</a>`,
          )}
        </nav>
        <div class="foot">
          <${LiveMark} live=${problem?.status === 0 ? 'away' : live} />
          <${ThemeSwitch} />
          <${KeysButton} />
          ${
            session.name !== 'local' &&
            html`<div class="who"><span>${toShown(session.name)}, may ${session.scope}</span>
            <button type="button" class="link" onClick=${leave}>Sign out</button></div>`
          }
        </div>
      </aside>
      <div class="content">
        <div class="verdict" role="status">
          <${Headline} of=${status} />
          ${value !== undefined && detailsOf(value) !== page && html`<a class="details" href=${hrefOf(detailsOf(value))}>Details</a>`}
          <${SearchButton} />
        </div>
        <main id="main" tabindex="-1">
          ${value !== undefined && problem?.status === 0 && html`<${OtherPlanes} status=${value} />`}
          ${value !== undefined && html`<div class="notices" role="status"><${Notices} notices=${value.notices} /></div>`}
          ${
            current === undefined
              ? html`<${NoSuchPage} name=${page} />`
              : html`<${current.component} key=${page} params=${params} status=${status} />`
          }
        </main>
      </div>
    </div>`;
}

/** The verdict in one line, or the reason why it is missing or outdated. */
function Headline({ of: { value, atMs, problem } }: { readonly of: Resource<StatusJson> }) {
  if (value === undefined) {
    return html`<span class="quiet">${problem ? toSentence(problem.text) : 'Reading…'}</span>`;
  }
  const headline = toHeadline(value);
  if (problem !== undefined) {
    return html`<${Badge} tone="bad">no answer<//> <span class="text">As of ${toClock(atMs)}: ${toShown(headline)}</span>`;
  }
  return html`<${VerdictBadge} status=${value} /> <span class="text">${toSentence(headline)}</span>`;
}

/** A revision that all workers have is not in force if they do not decide by it. */
function VerdictBadge({ status }: { readonly status: StatusJson }) {
  const { verdict } = status;
  return isUnenforced(status) && tones[verdict] !== 'bad'
    ? html`<${Badge} tone="bad">${verdict === 'in_force' ? 'not enforced' : verdicts[verdict]}<//>`
    : html`<${Badge} tone=${tones[verdict]}>${verdicts[verdict]}<//>`;
}

function NoSuchPage({ name }: { readonly name: string }) {
  return html`<${Page} title="No such page" about="The console has these pages.">
    <${Empty} title=${`There is no page '${toShown(name)}'.`}>
      <ul class="plain">${pages.map((each) => html`<li><a href=${hrefOf(each.name)}>${each.title}</a></li>`)}</ul>
    <//>
  <//>`;
}

const liveTexts: Readonly<Record<LiveState | 'away', readonly [Tone, string]>> = {
  live: ['good', 'Live'],
  polling: ['wait', 'Every 5 s'],
  connecting: ['plain', 'Connecting'],
  away: ['bad', 'No answer'],
};

function LiveMark({ live }: { readonly live: LiveState | 'away' }) {
  const [tone, text] = liveTexts[live];
  return html`<${Badge} tone=${tone}>${text}<//>`;
}
