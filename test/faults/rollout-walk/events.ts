// What can happen to a fleet. Each event returns what it did, or nothing if it was impossible at that moment.
import { createRandom, type Random } from '../../support/random.ts';
import type {
  SimulatedFleet,
  SimulatedPlane,
  SimulatedWorker,
} from '../../support/simulated-fleet.ts';
import type { Revisions } from './published.ts';

export interface World {
  readonly fleet: SimulatedFleet;
  readonly revisions: Revisions;
  readonly planeNames: readonly string[];
  /** Second of the walk. */
  readonly second: number;
  /** Names of stalled control planes. */
  readonly standing: Set<string>;
  /** Contents that an operator has approved. */
  readonly letThrough: Set<number>;
  /** Workers that left by themselves; all others reconnect as soon as they can. */
  readonly gone: Set<SimulatedWorker>;
  /** Runs `task` after this many seconds, at the latest at the end of the walk. */
  later(seconds: number, task: () => void | Promise<void>): void;
  /** An event that the ledger must know about. */
  note(what: 'lie'): void;
  /** A user was told that this rollout is over. */
  noteAborted(rollout: string): void;
}

type Happen = (world: World, random: Random) => string | undefined | Promise<string | undefined>;

const events = {
  'publish good': publish('good'),
  'publish refused': publish('refused', { isRefused: true }),
  'publish over limit': publish('all over limit', { overLimit: 1 }),
  'publish errors': publish('errors', { errors: 0.3 }),
  'publish now': (world) => {
    const message = 'in a hurry\n\nRollout: now';
    return publishIn(world, { message, isImmediate: true, what: 'now' });
  },
  'publish supersede': (world, random) => {
    const effect = random.pick([undefined, { isRefused: true }, { overLimit: 1 }]);
    const message = 'instead\n\nRollout: supersede';
    const what = `supersedes, ${effect ? 'bad' : 'good'}`;
    return publishIn(world, { message, ...(effect ? { effect } : {}), what });
  },
  'publish undo': (world) => {
    const [inForce] = world.fleet.readRecord()?.inForce ?? [];
    const before = inForce && world.revisions.find(inForce.revision);
    if (before === undefined || before.content === 0) return undefined;
    const { content } = before;
    return publishIn(world, { content, isImmediate: true, what: 'what is in force again' });
  },
  'publish older': (world, random) => {
    const { fleet, revisions } = world;
    const past = fleet.readRecord()?.inForce.slice(1) ?? [];
    const before = past.length > 0 ? revisions.find(random.pick(past).revision) : undefined;
    if (before === undefined || before.content === 0) return undefined;
    const message = random.pick([undefined, 'back\n\nRollout: now', 'back\n\nRollout: steps']);
    // Content that is already on trial continues with its steps.
    const isTried = [...fleet.planes.values()].some(({ cache }) => {
      const { trial } = cache.state();
      return trial && revisions.find(trial.revision.id)?.content === before.content;
    });
    const isImmediate = message?.endsWith('now') === true || (message === undefined && !isTried);
    return publishIn(world, {
      content: before.content,
      ...(message ? { message } : {}),
      isImmediate,
      what: `what was in force before${message?.endsWith('steps') ? ', in steps' : ''}`,
    });
  },
  'publish again': (world, random) => {
    const { fleet, revisions } = world;
    const taken = (fleet.readRecord()?.verdicts ?? []).filter(
      ({ outcome }) => outcome === 'taken_back',
    );
    const before = taken.length > 0 ? revisions.find(random.pick(taken).revision) : undefined;
    if (before === undefined) return undefined;
    return publishIn(world, { content: before.content, what: 'what was taken back' });
  },
  'publish removal': (world, random) => {
    const isAllowed = random.chance(0.3);
    if (isAllowed) world.letThrough.add(0);
    const message = isAllowed ? { message: 'moved\n\nAllow-Removal: yes' } : {};
    return publishIn(world, {
      content: 0,
      ...message,
      what: `no rules${isAllowed ? ', as meant' : ''}`,
    });
  },

  'workers leave': (world, random) => {
    const most = random.chance(0.2) ? world.fleet.workers.length : 4;
    const some = draw(connected(world), 1 + random.below(most), random);
    const how = random.pick(['goodbye', 'broken'] as const);
    const back = random.chance(0.8) ? 1 + random.below(20) : 1_000;
    const isRestart = random.chance(0.5);
    for (const worker of some) {
      world.fleet.disconnect(worker, how);
      world.gone.add(worker);
      world.later(back, () => comeBack(world, worker, isRestart, random));
    }
    return `${namesOf(some)} leave (${how})${back < 1_000 ? `, back in ${back} s as ${isRestart ? 'another' : 'the same'} instance` : ''}`;
  },
  'workers join': (world, random) => {
    const plane = drawPlane(world, random);
    if (plane === undefined) return undefined;
    const { fleet } = world;
    const count = 1 + random.below(5);
    // Some share the node id of an existing worker.
    for (let index = 0; index < count; index++) {
      const other = random.chance(0.3) ? random.pick(fleet.workers) : undefined;
      const id = other?.id ?? `joined-${fleet.workers.length}`;
      fleet.addWorker({ id, plane: plane.name });
    }
    return `${count} more workers at ${plane.name}`;
  },
  'workers move': (world, random) => {
    const plane = drawPlane(world, random);
    if (plane === undefined || world.planeNames.length === 1) return undefined;
    const some = draw(connected(world), 1 + random.below(6), random).filter(
      (worker) => worker.plane !== plane.name,
    );
    for (const worker of some) {
      world.fleet.disconnect(worker, random.pick(['goodbye', 'broken']));
      world.fleet.connect(worker, plane.name);
    }
    return some.length > 0 ? `${namesOf(some)} move to ${plane.name}` : undefined;
  },
  'workers are silent': (world, random) => {
    const some = draw(connected(world), 1 + random.below(3), random);
    const seconds = 1 + random.below(25);
    for (const worker of some) answers(world, worker, 'ignore', seconds);
    return `${namesOf(some)} answer nothing for ${seconds} s`;
  },
  'workers report nothing': (world, random) => {
    const most = random.chance(0.2) ? world.fleet.workers.length : 4;
    const some = draw(connected(world), 1 + random.below(most), random);
    const seconds = 1 + random.below(40);
    for (const worker of some) {
      worker.isUnlinked = true;
      world.later(seconds, () => {
        worker.isUnlinked = false;
      });
    }
    return `${namesOf(some)} report nothing for ${seconds} s`;
  },
  'a worker refuses': (world, random) => {
    const some = draw(connected(world), 1 + random.below(2), random);
    const seconds = 1 + random.below(25);
    for (const worker of some) answers(world, worker, 'refuse', seconds);
    return `${namesOf(some)} refuse for ${seconds} s`;
  },
  'a worker lies': (world, random) => {
    const some = draw(connected(world), 1 + random.below(2), random);
    const lies = random.pick([{ errors: 1 }, { overLimit: 1 }, { overLimit: 0, errors: 0 }]);
    const seconds = 5 + random.below(30);
    for (const worker of some) {
      worker.lies = lies;
      world.later(seconds, () => {
        worker.lies = undefined;
      });
    }
    world.note('lie');
    return `${namesOf(some)} report ${JSON.stringify(lies)} for ${seconds} s`;
  },

  'a control plane stops': async (world, random) => {
    const plane = drawPlane(world, random);
    if (plane === undefined) return undefined;
    const next = random.chance(0.6) ? otherOf(world, plane, random) : undefined;
    await world.fleet.stopPlane(plane.name, next);
    return `${plane.name} stops, its workers ${next ? `go to ${next}` : 'wait'}; ${startsAgain(world, plane.name, random)}`;
  },
  'a control plane is killed': (world, random) => {
    const plane = drawPlane(world, random);
    if (plane === undefined) return undefined;
    const next = random.chance(0.6) ? otherOf(world, plane, random) : undefined;
    world.fleet.killPlane(plane.name, next);
    return `${plane.name} is killed, its workers ${next ? `go to ${next}` : 'wait'}; ${startsAgain(world, plane.name, random)}`;
  },
  'a control plane is killed at a write': (world, random) => {
    const { text } = world.fleet;
    if (text.onWrite !== undefined) return undefined;
    const when = random.pick(['before', 'after'] as const);
    const skipped = random.below(3);
    let seen = 0;
    text.onWrite = (name) => {
      if (seen++ < skipped) return undefined;
      text.onWrite = undefined;
      startsAgain(world, name, random);
      world.later(0, () => world.fleet.killPlane(name));
      return when;
    };
    return `whoever writes the record ${skipped} writes from now is killed ${when} it`;
  },
  'a control plane stands still': (world, random) => {
    const plane = drawPlane(world, random);
    if (plane === undefined) return undefined;
    const seconds = 1 + random.below(20);
    world.fleet.standStill(plane.name);
    world.standing.add(plane.name);
    world.later(seconds, () => {
      if (!world.standing.delete(plane.name)) return;
      if (world.fleet.planes.get(plane.name) === plane) world.fleet.goOn(plane.name);
    });
    return `${plane.name} stands still for ${seconds} s`;
  },
  'a control plane is cut off': (world, random) => {
    const plane = drawPlane(world, random);
    if (plane === undefined) return undefined;
    const seconds = 1 + random.below(20);
    plane.isCutOff = true;
    world.later(seconds, () => {
      plane.isCutOff = false;
    });
    return `${plane.name} is cut off from its peers for ${seconds} s`;
  },
  'the store is away': (world, random) => {
    const seconds = 1 + random.below(20);
    const names = random.chance(0.5) ? world.planeNames : [random.pick(world.planeNames)];
    const reach = random.pick(['away', 'denied'] as const);
    for (const name of names) world.fleet.reach.set(name, reach);
    world.later(seconds, () => {
      for (const name of names) world.fleet.reach.delete(name);
    });
    return `the store is ${reach} for ${names.join(', ')} for ${seconds} s`;
  },
  'a control plane notices late': (world, random) => {
    const name = random.pick(world.planeNames);
    const ms = 500 + random.below(6_000);
    world.fleet.delayMs.set(name, ms);
    world.later(5 + random.below(20), () => void world.fleet.delayMs.delete(name));
    return `${name} notices revisions ${ms} ms late`;
  },
  'the wall clock jumps': ({ fleet }, random) => {
    const ms = fleet.clock.wallMs() + (random.below(2_000_000) - 1_000_000) * 1_000;
    fleet.clock.setWall(ms);
    return 'the wall clock jumps';
  },

  'somebody pauses': act('pause'),
  'somebody resumes': act('resume'),
  'somebody promotes': act('promote'),
  'somebody aborts': act('abort'),
  'somebody approves': async (world, random) => {
    const plane = drawPlane(world, random);
    const newest = plane?.cache.state().newest;
    if (plane === undefined || newest === undefined) return undefined;
    const content = world.revisions.find(newest.revision.id)?.content;
    const phase = plane.rollout.state()?.phase;
    if (!newest.isHeldBack && phase !== 'indivisible') return undefined;
    if (content !== undefined) world.letThrough.add(content);
    const refused = await waited(
      world,
      plane.rollout.approve(newest.revision.id, 'it is meant', 'Ann'),
    );
    return `approve ${newest.revision.id.slice(0, 4)} at ${plane.name}: ${refused ?? 'done'}`;
  },
} satisfies Record<string, Happen>;

export type EventKind = keyof typeof events;

/** With the weight of each. */
export const eventKinds: readonly (readonly [EventKind, number])[] = [
  ['publish good', 6],
  ['publish refused', 3],
  ['publish over limit', 3],
  ['publish errors', 3],
  ['publish now', 1],
  ['publish supersede', 2],
  ['publish undo', 3],
  ['publish older', 2],
  ['publish again', 2],
  ['publish removal', 1],
  ['workers leave', 5],
  ['workers join', 2],
  ['workers move', 3],
  ['workers are silent', 2],
  ['workers report nothing', 2],
  ['a worker refuses', 1],
  ['a worker lies', 2],
  ['a control plane stops', 2],
  ['a control plane is killed', 2],
  ['a control plane is killed at a write', 2],
  ['a control plane stands still', 2],
  ['a control plane is cut off', 2],
  ['the store is away', 2],
  ['a control plane notices late', 2],
  ['the wall clock jumps', 1],
  ['somebody pauses', 1],
  ['somebody resumes', 2],
  ['somebody promotes', 1],
  ['somebody aborts', 2],
  ['somebody approves', 2],
];

export async function happen(
  world: World,
  kind: EventKind,
  seed: number,
): Promise<string | undefined> {
  return events[kind](world, createRandom(seed));
}

type NewRevision = Omit<Parameters<Revisions['create']>[0], 'at'>;

function publish(what: string, effect?: NewRevision['effect']): Happen {
  return (world) => publishIn(world, { ...(effect ? { effect } : {}), what });
}

function publishIn({ revisions, fleet, second }: World, wanted: NewRevision): string {
  const { revision, published } = revisions.create({ ...wanted, at: second });
  fleet.store.publish(revision);
  const { id, content, text } = published;
  return `revision ${id.slice(0, 4)} with content ${content}: ${text}`;
}

function act(action: 'pause' | 'resume' | 'promote' | 'abort'): Happen {
  return async (world, random) => {
    const plane = drawPlane(world, random);
    const open = plane?.keeper.record.rollout;
    if (plane === undefined || open == null) return undefined;
    if (open.outcome !== 'running' && open.outcome !== 'paused') return undefined;
    const content = world.revisions.find(open.revision)?.content;
    if (action === 'promote' || action === 'resume') {
      if (content !== undefined) world.letThrough.add(content);
    }
    const refused = await waited(world, plane.rollout.act(action, 'as somebody says', 'Ann'));
    if (action === 'abort' && refused === undefined) world.noteAborted(open.id);
    return `${action} ${open.revision.slice(0, 4)} at ${plane.name}: ${refused ?? 'done'}`;
  };
}

/** The control plane may be killed meanwhile. */
async function waited(
  { fleet }: World,
  answer: Promise<string | undefined>,
): Promise<string | undefined> {
  let result: string | undefined = 'no answer';
  void answer.then((given) => {
    result = given;
  });
  await fleet.settle();
  return result;
}

function drawPlane({ fleet, standing }: World, random: Random): SimulatedPlane | undefined {
  const running = [...fleet.planes.values()].filter(({ name }) => !standing.has(name));
  return running.length > 0 ? random.pick(running) : undefined;
}

function otherOf({ fleet, standing }: World, plane: SimulatedPlane, random: Random) {
  const others = [...fleet.planes.keys()].filter(
    (name) => name !== plane.name && !standing.has(name),
  );
  return others.length > 0 ? random.pick(others) : undefined;
}

function startsAgain(world: World, name: string, random: Random): string {
  const seconds = 1 + random.below(25);
  const isFresh = random.chance(0.3);
  world.standing.delete(name);
  world.later(seconds, async () => {
    const { fleet, revisions } = world;
    if (fleet.planes.has(name)) return;
    // In a read-only directory, a control plane cannot know what is in force, only what is newest.
    const inForce = fleet.readRecord()?.inForce[0]?.revision ?? revisions.newest.id;
    const knowsAll = inForce === revisions.newest.id || fleet.canRead('', inForce);
    await fleet.startPlane(name, isFresh && knowsAll);
  });
  return `starts again in ${seconds} s${isFresh ? ', fresh' : ''}`;
}

function comeBack(world: World, worker: SimulatedWorker, isRestart: boolean, random: Random): void {
  world.gone.delete(worker);
  if (worker.plane !== undefined) return;
  if (isRestart && worker.instance !== undefined) {
    worker.instance = `${worker.instance.split('#')[0]}#${world.second}`;
  }
  if (isRestart) {
    worker.has = undefined;
    worker.told = undefined;
  }
  const names = [...world.fleet.planes.keys()];
  if (names.length > 0) world.fleet.connect(worker, random.pick(names));
}

function answers(
  world: World,
  worker: SimulatedWorker,
  answer: SimulatedWorker['answer'],
  seconds: number,
): void {
  worker.answer = answer;
  world.later(seconds, () => {
    worker.answer = 'take';
  });
}

function connected({ fleet }: World): SimulatedWorker[] {
  return fleet.workers.filter(({ plane }) => plane !== undefined);
}

function draw(workers: SimulatedWorker[], count: number, random: Random): SimulatedWorker[] {
  const left = [...workers];
  const drawn: SimulatedWorker[] = [];
  while (drawn.length < count && left.length > 0) {
    drawn.push(...left.splice(random.below(left.length), 1));
  }
  return drawn;
}

function namesOf(workers: readonly SimulatedWorker[]): string {
  if (workers.length > 4) return `${workers.length} workers`;
  return workers.map(({ id, instance }) => `${id}/${instance?.slice(0, 4)}`).join(', ');
}
