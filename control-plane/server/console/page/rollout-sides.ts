// The two sides of a rollout: the workers that get the revision and the others, with the figures of each side, and the
// thresholds at which the revision is taken back.
import { html } from 'htm/preact';
import type { WorkerJson } from '../../admin/fleet-json.ts';
import type { StatusJson } from '../../admin/status-report.ts';
import type { RolloutPlanJson } from '../../rollout/rollout-json.ts';
import { toCount } from './format.ts';
import { WorkerName } from './names.ts';
import { Badge } from './parts.ts';
import type { Resource } from './resource.ts';
import { workerStates } from './worker-states.ts';

/** Shares between 0 and 1; undefined without decisions. */
interface Figures {
  readonly errors: number | undefined;
  readonly overLimit: number | undefined;
  /** The time in milliseconds. */
  readonly p99: number | undefined;
}

interface Sample {
  readonly atMs: number;
  readonly having: Figures;
  readonly others: Figures;
}

const mostSamples = 60;
/** The samples that this tab has collected during the rollout of one revision. */
let seen: { readonly revision: string; readonly samples: readonly Sample[] } | undefined;

function observe(revision: string, sample: Sample): readonly Sample[] {
  const before = seen?.revision === revision ? seen.samples : [];
  if (before.at(-1)?.atMs === sample.atMs) return before;
  const samples = [...before, sample].slice(-mostSamples);
  seen = { revision, samples };
  return samples;
}

interface SidesProps {
  readonly revision: string;
  readonly status: Resource<StatusJson>;
  /** Undefined while unknown. */
  readonly plan: RolloutPlanJson | undefined;
}

export function RolloutSides({ revision, status, plan }: SidesProps) {
  const workers = status.value?.fleet?.workers;
  if (workers === undefined) return null;
  const having = workers.filter(({ gets }) => gets === revision);
  const others = workers.filter(({ gets }) => gets !== revision);
  const now = { atMs: status.atMs, having: toFigures(having), others: toFigures(others) };
  const samples = observe(revision, now);
  const line = plan && toLine(now.others, plan);
  const side = (name: 'having' | 'others') => samples.map((sample) => sample[name]);
  return html`<div class="sides">
    <${Side} title="With it" workers=${having} samples=${side('having')} line=${line} />
    <${Side} title="Without it" workers=${others} samples=${side('others')} />
  </div>
  <p class="quiet">From the latest reports. All decisions since the step began are judged${plan === undefined ? '' : `: it is taken back when errors are more than ${plan.errorPoints} point above the others, or over limit or without a rule more than ${plan.overLimitPoints} points above, or ${plan.fewPoints} points and ${plan.overLimitFactor} times as high. p99 is not judged`}.</p>`;
}

interface SideProps {
  readonly title: string;
  readonly workers: readonly WorkerJson[];
  readonly samples: readonly Figures[];
  /** The threshold above which the revision is taken back. */
  readonly line?: Figures | undefined;
}

const mostNames = 24;

function Side({ title, workers, samples, line }: SideProps) {
  const row = (name: string, field: keyof Figures, toText: (value: number) => string) => {
    const value = samples.at(-1)?.[field];
    const limit = line?.[field];
    const isAbove = value !== undefined && limit !== undefined && value > limit;
    return html`<dt>${name}</dt>
      <dd class=${isAbove ? 'loud' : ''}>${value === undefined ? '–' : toText(value)}</dd>
      <dd><${Trend} values=${samples.map((each) => each[field])} line=${limit} /></dd>
      <dd class="quiet">${limit !== undefined && `taken back above ${toText(limit)}`}</dd>`;
  };
  return html`<section aria-label=${title}>
    <h3>${title} <span class="quiet">${toCount(workers.length, 'worker')}</span></h3>
    <dl class="figures">
      ${row('Errors', 'errors', toPercent)}
      ${row('Over limit', 'overLimit', toPercent)}
      ${row('p99, at most', 'p99', (value) => `${value} ms`)}
    </dl>
    <ul class="turning">${workers.slice(0, mostNames).map(({ name, state, address }) => {
      const [tone, text] = workerStates[state];
      return html`<li key=${`${name} ${address}`}><${WorkerName} name=${name} /> <${Badge} tone=${tone}>${text}<//></li>`;
    })}${workers.length > mostNames && html`<li class="quiet">and ${workers.length - mostNames} more</li>`}</ul>
  </section>`;
}

const [width, height] = [120, 26];

interface TrendProps {
  readonly values: readonly (number | undefined)[];
  readonly line: number | undefined;
}

function Trend({ values, line }: TrendProps) {
  const known = values.flatMap((value) => value ?? []);
  const largest = Math.max(...known, line ?? 0, 1e-9);
  const toY = (value: number) => (height - 2 - (value / largest) * (height - 4)).toFixed(1);
  const step = width / Math.max(1, values.length - 1);
  const points = values.flatMap((value, index) =>
    value === undefined ? [] : `${(index * step).toFixed(1)},${toY(value)}`,
  );
  return html`<svg class="spark trend" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} aria-hidden="true">
    <polyline points=${points.join(' ')} />
    ${line !== undefined && html`<line class="bound" x1="0" x2=${width} y1=${toY(line)} y2=${toY(line)} />`}
  </svg>`;
}

function toFigures(workers: readonly WorkerJson[]): Figures {
  const all = workers.flatMap(({ figures }) => figures ?? []);
  const sum = (field: 'decisionsPerSecond' | 'overLimitPerSecond' | 'errorsPerSecond') =>
    all.reduce((total, each) => total + each[field], 0);
  const requests = sum('decisionsPerSecond') + sum('errorsPerSecond');
  const share = (count: number) => (requests === 0 ? undefined : count / requests);
  const slowest = all.flatMap(({ p99Ms, p99AboveMs }) => p99AboveMs ?? p99Ms ?? []);
  return {
    errors: share(sum('errorsPerSecond')),
    overLimit: share(sum('overLimitPerSecond')),
    p99: slowest.length === 0 ? undefined : Math.max(...slowest),
  };
}

/** Computed as a rollout judges; undefined if no share can reach the threshold. */
function toLine({ errors, overLimit }: Figures, plan: RolloutPlanJson): Figures {
  const possible = (share: number) => (share < 1 ? share : undefined);
  return {
    errors: errors === undefined ? undefined : possible(errors + plan.errorPoints / 100),
    overLimit:
      overLimit === undefined
        ? undefined
        : possible(
            Math.min(
              overLimit + plan.overLimitPoints / 100,
              Math.max(overLimit + plan.fewPoints / 100, overLimit * plan.overLimitFactor),
            ),
          ),
    p99: undefined,
  };
}

function toPercent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
