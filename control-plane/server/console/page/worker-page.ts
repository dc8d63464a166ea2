// The page of one worker: its rules, its decisions, and its problems.
import { html } from 'htm/preact';
import type { GoneWorkerJson, WorkerJson } from '../../admin/fleet-json.ts';
import { toAgo, toP99, toRate, toShortId, toShown, toTime } from './format.ts';
import { RevisionName } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Badge, Empty, Notice, Page, ReadingState, Tile } from './parts.ts';
import { hrefOf } from './route.ts';
import { workerStates } from './worker-states.ts';

export function WorkerPage({ params, status }: PageProps) {
  const name = params.get('name') ?? '';
  const fleet = status.value?.fleet;
  const worker = fleet?.workers.find((each) => each.name === name);
  const gone = fleet?.gone.find(({ id }) => id === name);
  return html`<${Page} title=${toShown(name)} about="A worker: its rules and its decisions.">
    <${ReadingState} of=${status} />
    ${
      fleet &&
      (worker !== undefined
        ? html`<${Connected} worker=${worker} />`
        : gone !== undefined
          ? html`<${Gone} worker=${gone} />`
          : html`<${Empty} title="No worker of this name is connected, or has been in the last hour."><p><a href=${hrefOf('fleet')}>Show the fleet</a></p><//>`)
    }
  <//>`;
}

function Connected({ worker }: { readonly worker: WorkerJson }) {
  const { state, nacked, figures, revision, gets, acked } = worker;
  const [tone, text] = workerStates[state];
  const p99 = figures === null ? undefined : toP99(figures);
  return html`
    ${state === 'refused' && nacked !== null && html`<${Notice} tone="bad"><strong>It refused its rules, ${toAgo(nacked.at)}:</strong> ${toShown(nacked.text)}<//>`}
    ${figures === null && html`<${Notice} tone="wait"><strong>It does not report:</strong> its decisions are not known.<//>`}
    ${
      figures !== null &&
      html`<dl class="tiles">
        <${Tile} name="Decisions/s" value=${toRate(figures.decisionsPerSecond)} detail=${`reported ${toAgo(figures.at)}`} />
        <${Tile} name="Over limit/s" value=${toRate(figures.overLimitPerSecond)} />
        <${Tile} name="Errors/s" value=${toRate(figures.errorsPerSecond)} tone=${figures.errorsPerSecond > 0 ? 'bad' : 'plain'} />
        <${Tile} name=${p99 === undefined ? 'p99' : `p99, ${p99[0]}`} value=${p99?.[1] ?? '–'} />
        <${Tile} name="Store" value=${toShown(figures.store.kind)} detail=${figures.store.serversAway === 0 ? 'reached' : `${figures.store.serversAway} away`} tone=${figures.store.serversAway === 0 ? 'plain' : 'bad'} />
      </dl>`
    }
    <dl class="facts">
      <dt>Rules</dt><dd><${Badge} tone=${tone}>${text}<//></dd>
      <dt>Has</dt><dd>${revision === null ? (acked === null ? 'nothing yet' : 'an earlier revision') : html`<${RevisionName} id=${revision} />`}${acked !== null && html` <span class="quiet">since ${toTime(acked.at)}</span>`}</dd>
      <dt>Gets</dt><dd>${gets === null ? 'nothing' : html`<${RevisionName} id=${gets} />`}</dd>
      <dt>Connected</dt><dd>since ${toTime(worker.connectedSince)}, from ${worker.address}</dd>
      <dt>Group</dt><dd>${worker.group === null ? '–' : toShown(worker.group)}</dd>
      <dt>Node id</dt><dd><code>${toShown(worker.id)}</code></dd>
      <dt>Instance</dt><dd>${worker.instance === null ? 'not reported' : html`<code>${toShown(worker.instance)}</code>`}</dd>
      <dt>Protocol</dt><dd>xDS, ${worker.protocol === 'delta' ? 'delta' : 'state of the world'}</dd>
    </dl>`;
}

function Gone({ worker }: { readonly worker: GoneWorkerJson }) {
  const { id, at, address, instance, version, refusal } = worker;
  return html`<${Notice} tone="bad"><strong>It is gone, ${toAgo(at)}:</strong> its connection broke, and it has not reconnected.<//>
    ${refusal != null && html`<${Notice} tone="bad"><strong>It had refused its rules, ${toAgo(refusal.at)}:</strong> ${toShown(refusal.text)}<//>`}
    <dl class="facts">
      <dt>Gone</dt><dd>since ${toTime(at)}</dd>
      <dt>Had</dt><dd>${version === null ? 'no rules' : html`<code>${toShown(toShortId(version))}</code> <span class="quiet">the version of its rules</span>`}</dd>
      <dt>Address</dt><dd>${address}</dd>
      <dt>Node id</dt><dd><code>${toShown(id)}</code></dd>
      <dt>Instance</dt><dd>${instance === null ? 'not reported' : html`<code>${toShown(instance)}</code>`}</dd></dl>`;
}
