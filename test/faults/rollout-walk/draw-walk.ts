// Derives a walk from its seed: a fleet, and what happens to it in which second. Each event has its own seed, so that a
// walk can be repeated with only some of its events.
import { createRandom } from '../../support/random.ts';
import { type EventKind, eventKinds } from './events.ts';

export interface WalkEvent {
  readonly second: number;
  readonly kind: EventKind;
  readonly seed: number;
}

export interface Walk {
  readonly seed: number;
  readonly workers: number;
  readonly planes: readonly string[];
  readonly plan: string;
  readonly kind: 'directory' | 'git';
  readonly reportSeconds: number;
  readonly peerMs: number;
  readonly apartMs: number;
  readonly seconds: number;
  readonly events: readonly WalkEvent[];
}

const plans = [
  'canary=10%,hold=5s',
  'canary=10%,hold=8s,on-silence=stop',
  '5%:3s,25%:5s',
  '10%:3s,50%:3s,on-indivisible=proceed',
  '20%:4s,on-silence=stop',
];

export function drawWalk(seed: number): Walk {
  const random = createRandom(seed);
  const seconds = 40 + random.below(80);
  const weighted = eventKinds.flatMap(([kind, weight]) => Array<EventKind>(weight).fill(kind));
  const pause = random.pick([2, 4, 8]);
  const events: WalkEvent[] = [];
  for (let second = 1; second < seconds; second += random.below(pause) + random.below(3)) {
    events.push({ second, kind: random.pick(weighted), seed: random.below(2 ** 31) });
  }
  return {
    seed,
    workers: random.pick([20, 20, 30, 50, 200]),
    planes: ['a', 'b', 'c'].slice(0, 1 + random.below(3)),
    plan: random.pick(plans),
    kind: random.chance(0.6) ? 'directory' : 'git',
    reportSeconds: random.pick([1, 1, 5]),
    peerMs: random.pick([0, 0, 400, 1_500]),
    apartMs: random.below(1_000),
    seconds,
    events,
  };
}
