// What a fleet does, as texts for review: each file of scenarios/ has a title, then commands and, below a line
// `---`, their results second by second. `REWRITE=1` rewrites the results.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { createFleetTable } from '../../../test/support/fleet-table.ts';
import { revisionOf } from '../../../test/support/revision-store.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import {
  type Effect,
  type FleetOptions,
  type SimulatedFleet,
  type SimulatedWorker,
  startSimulatedFleet,
  withGroups,
} from '../../../test/support/simulated-fleet.ts';
import { gitTiming } from '../record/record-keeper.ts';
import type { RolloutAction } from './changes.ts';
import type { Meant } from './fleet-state.ts';

const { REWRITE } = process.env;
const folder = new URL('scenarios/', import.meta.url);
const idOf = (number: string) => (number === '1' ? revisionOf(1).id : number.padEnd(40, 'f'));
/** Names revisions by their numbers. The order of workers depends on ids, which unrelated changes also draw. */
const shorten = (text: string) =>
  text
    .replaceAll(/(\d+)f{8,}/g, '$1')
    .replaceAll(/\b0{11,39}1?\b/g, '1')
    .replaceAll(/'([a-z]+)-\d+'/g, "'$1-…'");

/** One scenario under way. */
interface Scene {
  readonly fleet: SimulatedFleet;
  readonly groups: NonNullable<FleetOptions['groups']>[number][];
  /** The record as it was saved. */
  readonly saved: { text?: string | undefined };
  /** Revisions that kill any worker that loads them. */
  readonly deadly: Set<string>;
  /** What an operator saw of a rollout. */
  seen: Meant;
  seconds: number;
  /** The last status that was shown. */
  shown: string;
  logged: number;
}

type Command = (scene: Scene, ...words: string[]) => unknown;

const commands: Readonly<Record<string, Command>> = {
  /** `publish NUMBER [like NUMBER] [supersede|now|again|steps] [with DOMAIN[:KEYS]]...`: each revision has other limits
   * of a domain, whose keys are `k`, or such as `k1,k2`. `publish NUMBER nothing` removes all rules, and `publish
   * NUMBER of COUNT` has COUNT limits of one domain, both with `allowed` by the author; `publish NUMBER invalid` cannot
   * be read. */
  publish({ fleet, groups }, number = '', ...how) {
    const like = how[0] === 'like' ? Number(how[1]) : Number(number);
    const trailers = [
      ...['supersede', 'now', 'again', 'steps'].flatMap((each) =>
        how.includes(each) ? [`Rollout: ${each}`] : [],
      ),
      ...(how.includes('allowed') ? ['Allow-Removal: yes'] : []),
    ];
    const message = trailers.length === 0 ? undefined : `better\n\n${trailers.join('\n')}`;
    const domains = how.filter((_, at) => how[at - 1] === 'with');
    const revision = revisionOf(like, message);
    const more = domains.map((given) => {
      const [name = '', keys = 'k'] = given.split(':');
      const [head = '', rule = ''] = ruleText(name, like).split(/(?= {2}- key: k)/);
      const rules = keys.split(',').map((key) => rule.replace('key: k', `key: ${key}`));
      return { path: `${name}.yaml`, text: `${head}${rules.join('')}` };
    });
    const text = how.includes('of') ? limitsText(Number(how[how.indexOf('of') + 1])) : 'domain: [';
    const isOwn = how.includes('of') || how.includes('invalid');
    const given = isOwn ? [{ path: 'a.yaml', text }] : revision.files;
    const files = how.includes('nothing') ? [] : [...given, ...more];
    fleet.store.publish(withGroups({ ...revision, id: idOf(number), files }, groups));
  },
  /** `drop NUMBER`: a force push that drops a revision, before the one that it publishes. */
  drop: ({ fleet }, number = '') => fleet.store.drop(idOf(number)),
  /** What a revision does to workers that have it: `revision NUMBER errors|over-limit|no-match SHARE [of DOMAIN]`,
   * `refused` or `deadly`. */
  revision({ fleet, deadly }, number = '', what = '', share = '', _of = '', domain = '') {
    if (what === 'deadly') deadly.add(number);
    const all = toEffect(what, share);
    const effect = domain === '' ? all : { domains: { [domain]: all } };
    fleet.effects.set(Number(number), { ...effect, isRefused: what === 'refused' });
  },
  /** The effect of the callers of all workers, from none with the first worker to all of it with the last one: `callers
   * over-limit|errors|no-match SHARE`. */
  callers({ fleet }, what = '', share = '') {
    const last = fleet.workers.length - 1;
    for (const [at, worker] of fleet.workers.entries())
      worker.callers = toEffect(what, String((Number(share) * at) / last));
  },
  /** `come ID [COUNT [foreign]]`: more workers with this id connect; `foreign`: of another make. */
  come({ fleet }, id = '', count = '1', make = '') {
    const other = make === 'foreign' && { instance: undefined };
    for (let left = Number(count); left > 0; left--)
      fleet.addWorker({ id, plane: fleet.plane.name, ...other });
  },
  /** `delay PLANE SECONDS`: the control plane notices what is published only after this time, or when it asks; with
   * `Infinity` never by itself. */
  delay: ({ fleet }, plane = '', seconds) => void fleet.delayMs.set(plane, Number(seconds) * 1_000),
  /** `cut PLANE` and `join PLANE`: disconnects the control plane from its peers, and reconnects it. */
  cut: ({ fleet }, plane = '') => setCut(fleet, plane, true),
  join: ({ fleet }, plane = '') => setCut(fleet, plane, false),
  /** `clock TIME`: sets the clock of the machine. */
  clock: ({ fleet }, time) => fleet.clock.setWall(Number(time)),
  /** `offer`: a revision is offered, and no worker has answered yet. */
  async offer({ fleet }) {
    fleet.clock.advance(1_000);
    await fleet.settle();
  },
  /** `workers all|NUMBER|offered-NUMBER|GROUP[K] WHAT`, such as `ignore`, `cling`, `store-away` or `move PLANE
   * [broken]`: all workers, those that have a revision or are offered it, those of a node group, or its K-th worker,
   * counted from 0. */
  workers({ fleet }, which = '', what = '', plane = '', share = '') {
    const [, offered, name = '', at] = /^(offered-)?(\w+)(?:\[(\d+)\])?$/.exec(which) ?? [];
    const isOffered = ({ notified }: SimulatedWorker) =>
      notified?.resources.has(`revision-${name}`);
    const having = offered ? fleet.workers.filter(isOffered) : fleet.having(Number(name));
    const known = /^\d+$/.test(name) ? having : fleet.workers;
    const isMeant = ({ id }: SimulatedWorker) => known !== fleet.workers || id.startsWith(name);
    const those = known.filter(
      (each) => (each.plane || what === 'move') && (name === 'all' || isMeant(each)),
    );
    for (const each of at === undefined ? those : those.slice(Number(at), Number(at) + 1)) {
      if (what === 'ignore' || what === 'refuse' || what === 'take') each.answer = what;
      else if (what === 'cling') each.decides = each.has;
      else if (what === 'idle') each.decisionsPerSecond = 0;
      else if (what === 'rate') each.decisionsPerSecond = Number(plane);
      else if (what === 'lie') each.lies = toEffect(plane, share);
      else if (what === 'busy') each.decisionsPerSecond = 100_000;
      else if (what === 'fail' || what === 'well')
        each.callers = { errors: what === 'fail' ? 1 : 0 };
      else if (what.startsWith('store-')) each.isStoreAway = what === 'store-away';
      else if (what === 'move') {
        fleet.disconnect(each, share === 'broken' ? 'broken' : 'goodbye');
        fleet.connect(each, plane);
      } else fleet.disconnect(each, what === 'broken' ? 'broken' : 'goodbye');
    }
  },
  /** `record fine|away|denied`, `record emptied`, or `record saved` and `record restored` to the saved one. */
  record({ fleet: { text }, saved }, mode = '') {
    if (mode === 'saved') saved.text = text.content;
    else if (mode === 'restored' || mode === 'emptied') {
      text.content = mode === 'emptied' ? undefined : saved.text;
      text.writes++;
    } else text.mode = mode as 'fine';
  },
  /** `rename GROUP NAME`: renames a node group in the revisions that are published from now on. */
  rename({ groups }, group = '', name = '') {
    const at = groups.findIndex((each) => each.name === group);
    const found = groups[at];
    if (found !== undefined) groups[at] = { ...found, name, ids: found.ids ?? group };
  },
  /** `reach PLANE fine|away|denied`: how one control plane reaches the store and its record. */
  reach: ({ fleet }, plane = '', mode) => void fleet.reach.set(plane, mode as 'fine'),
  /** `hold store|record PLANE` and `release store|record PLANE`: its question to the store, or its write, is under way
   * in between. */
  hold: ({ fleet }, ...what) => void fleet.held.set(what.join(' '), Promise.withResolvers()),
  release({ fleet }, ...what) {
    fleet.held.get(what.join(' '))?.resolve();
    fleet.held.delete(what.join(' '));
    return fleet.settle();
  },
  /** `view PLANE`: an operator views its rollout, and leaves the page open. */
  view(scene, plane = '') {
    const { id, revision } = scene.fleet.planes.get(plane)?.rollout.state() ?? {};
    scene.seen = { rollout: id ?? undefined, revision };
  },
  /** `act ACTION PLANE [as-seen] REASON`. The answer is not awaited while the record is held. */
  async act({ fleet, seen }, action, plane = '', ...reason) {
    const { rollout } = fleet.planes.get(plane) ?? fleet.plane;
    const meant = reason[0] === 'as-seen' ? seen : {};
    const why = reason.filter((word) => word !== 'as-seen').join(' ');
    const answer = rollout.act(action as RolloutAction, why, 'ada', meant);
    return fleet.held.has(`record ${plane}`) ? undefined : answer;
  },
  undo: ({ fleet }, plane = fleet.plane.name) =>
    fleet.planes.get(plane)?.rollout.undo('undone by ada', 'ada'),
  /** `approve PLANE NUMBER REASON` */
  approve({ fleet }, plane = '', number = '', ...reason) {
    const { rollout } = fleet.planes.get(plane) ?? fleet.plane;
    return rollout.approve(idOf(number), reason.join(' '), 'ada');
  },
  /** `status`: what each control plane reports and serves now. */
  status: ({ fleet }) =>
    [...fleet.planes.values()]
      .map(({ name, rollout, cache }) => {
        const { phase = 'no rollout', text = '' } = rollout.state() ?? {};
        const { inForce, trial, newest } = cache.state();
        const tried = trial === undefined ? '' : `, ${trial.revision.id} on trial`;
        const why = newest?.problems.at(-1)?.message;
        const problem =
          newest?.valid || why === undefined ? '' : `, ${newest?.revision.id} not: ${why}`;
        const { error } = rollout.memory();
        const lines = [`${phase} ${text}`.trim(), ...(error === undefined ? [] : [error])];
        return `${name}: ${inForce?.revision.id} in force${tried}${problem}; ${lines.join('; ')}`;
      })
      .join('\n    '),
  /** `audit`: the actions that control planes took by themselves. */
  audit: ({ fleet }) => fleet.events.join('\n    ') || 'nothing',
  /** `remember`: what is on record about the revisions, the newest first. */
  remember({ fleet }) {
    const { rollout, outcomes = [], inForce = [], verdicts = [] } = fleet.readRecord() ?? {};
    const because = (reason: string) => (reason === '' ? '' : `: ${reason}`);
    return [
      `rollout of ${rollout?.revision ?? 'nothing'} ${rollout?.outcome ?? ''}`.trim(),
      ...inForce.slice(0, 1).map(({ revision }) => `in force is ${revision}`),
      ...verdicts.map(
        (each) =>
          `word on ${each.revision}: ${each.outcome} by '${each.by}'${because(each.reason)}`,
      ),
      ...outcomes.map(
        (each) => `${each.revisions} ${each.kind} by '${each.by}'${because(each.reason)}`,
      ),
    ].join('\n    ');
  },
  /** `lose PLANE NEXT`: kills a control plane for good; its workers connect to the next one. */
  lose: ({ fleet }, plane = '', next) => fleet.killPlane(plane, next),
  /** `kill PLANE [fresh]`: restarts a control plane, with `fresh` with an empty state directory; `stop PLANE NEXT`: its
   * workers connect to the next one. */
  async kill({ fleet }, plane = '', state = '') {
    fleet.killPlane(plane);
    await fleet.startPlane(plane, state === 'fresh');
    for (const worker of fleet.workers) fleet.connect(worker, plane);
  },
  /** `start PLANE [fresh]`, or `start PLANE:STEPS` with other steps. */
  async start({ fleet }, text = '', state = '') {
    const [name, steps] = toPlane(text);
    if (text.includes(':')) fleet.steps.set(name, steps);
    await fleet.startPlane(name, state === 'fresh');
    for (const each of fleet.workers) if (each.plane === undefined) fleet.connect(each, name);
  },
  stop: ({ fleet }, plane = '', next) => fleet.stopPlane(plane, next),
  /** `stopping PLANE`: the control plane has been asked to stop but is still running. */
  stopping: ({ fleet }, plane = '') => void fleet.planes.get(plane)?.rollout.stop(),
  /** `settle`: everything that is due at this moment is done. */
  settle: ({ fleet }) => fleet.settle(),
  stall: ({ fleet }, plane = '') => fleet.standStill(plane),
  resume: ({ fleet }, plane = '') => fleet.resume(plane),
};

function limitsText(count: number): string {
  const limits = Array.from(
    { length: count },
    (_, at) => `  - {key: k${at}, rate_limit: {unit: day, requests_per_unit: 1}}\n`,
  );
  return `domain: shop\ndescriptors:\n${limits.join('')}`;
}

function setCut({ planes }: SimulatedFleet, name: string, isCutOff: boolean): void {
  const plane = planes.get(name);
  if (plane !== undefined) plane.isCutOff = isCutOff;
}

function toEffect(what: string, share: string): Effect {
  const names = { errors: 'errors', 'over-limit': 'overLimit', 'no-match': 'noMatch' };
  return { [names[what as keyof typeof names] ?? '']: Number(share) };
}

function killLoaders({ fleet, deadly }: Scene): void {
  for (const worker of [...fleet.workers]) {
    const { plane, notified, id } = worker;
    const isDeadly = [...deadly].some((number) => notified?.resources.has(`revision-${number}`));
    if (plane === undefined || !isDeadly) continue;
    fleet.disconnect(worker, 'broken');
    fleet.addWorker({ id, plane, answer: worker.answer });
  }
}

/** Shows what every worker has, what each control plane reports, and what has been logged since. */
function show(scene: Scene): string[] {
  const { fleet } = scene;
  const connected = fleet.workers.filter(({ plane }) => plane !== undefined);
  const domainOf = ({ has }: SimulatedWorker) => [...(has?.resources.keys() ?? [])][0] ?? '';
  const having = [...Map.groupBy(connected, domainOf)]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(
      ([domain, { length }]) => `${length} have ${domain.replace('revision-', '') || 'nothing'}`,
    );
  const states = [...fleet.planes.values()].map(({ name, rollout }) => {
    const { phase, step, text = '' } = rollout.state() ?? {};
    return { summary: `${name} ${phase} ${step}`, text: phase ? `${name}: ${phase} ${text}` : '' };
  });
  const shown = [...having, ...states.map(({ summary }) => summary)].join();
  const lines = fleet.log.lines.slice(scene.logged).filter((line) => !line.startsWith('debug'));
  scene.logged = fleet.log.lines.length;
  const logged = lines.map((line) => `    ${shorten(line)}`);
  if (shown === scene.shown) return logged;
  scene.shown = shown;
  const texts = states.flatMap(({ text }) => (text === '' ? [] : shorten(text).trim()));
  return [...logged, `${scene.seconds} s: ${[having.join(', '), ...texts].join('; ')}`];
}

async function run(scene: Scene, line: string): Promise<string[]> {
  const [name = '', ...words] = line.split(' ');
  const out: string[] = [];
  if (name !== 'pass') {
    const command = commands[name];
    if (command === undefined) throw new Error(`there is no command '${name}'`);
    const answer = await command(scene, ...words);
    return typeof answer === 'string' ? [`${name}: ${shorten(answer)}`] : [];
  }
  for (let left = Number(words[0]); left > 0; left--) {
    killLoaders(scene);
    await scene.fleet.pass(1);
    scene.seconds++;
    out.push(...show(scene));
  }
  return out;
}

/** Parses a control plane such as `b`, `b:none` or `b:canary=50%,hold=5s`. */
function toPlane(text: string): [string, string] {
  const [name = '', ...steps] = text.split(':');
  return [name, steps.join(':').replace('none', '')];
}

/** Plays the text and returns it with its present results. */
async function play(t: ExecutionContext, name: string, text: string): Promise<string> {
  const [head = '', ...blocks] = text.trimEnd().split('\n\n');
  const [plan, count = '20', ...planes] = /^fleet (.*)$/m.exec(head)?.[1]?.split(' ') ?? [];
  const groups = [...head.matchAll(/^group (\S+) (\S+) (\d+)$/gm)].map(
    ([, name = '', steps = '', size]) => ({ name, steps, count: Number(size) }),
  );
  let drawn = 0;
  const steps = new Map(planes.flatMap((each) => (each.includes(':') ? [toPlane(each)] : [])));
  const names = planes.map((each) => toPlane(each)[0]);
  const fleet = await startSimulatedFleet(t, {
    ...{
      plan: plan?.replace('none', ''),
      steps,
      groups,
      workers: Number(count),
      drawId: () => `id-${++drawn}`,
    },
    ...(names.length > 0 && { planes: names }),
    ...(head.includes('\nstore git') && { timing: gitTiming }),
    ...(head.includes('\nstore directory') && { forgetsHistory: true }),
    onStep: (...given) => table.note(name, ...given),
    ...{ peerMs: Number(/^peers (\d+) ms$/m.exec(head)?.[1] ?? 0) },
  });
  const scene: Scene = {
    fleet,
    groups,
    saved: {},
    seen: {},
    deadly: new Set(),
    seconds: 0,
    shown: '',
    logged: 0,
  };
  const played = [head];
  for (const block of blocks) {
    const [given = ''] = block.split('\n---');
    const out: string[] = [];
    for (const line of given.split('\n')) out.push(...(await run(scene, line)));
    played.push([given, '---', ...out].join('\n'));
  }
  return `${played.join('\n\n')}\n`;
}

const names = readdirSync(folder).sort();
const table = createFleetTable();
let played = 0;

for (const name of names) {
  const path = new URL(name, folder);
  const text = readFileSync(path, 'utf8');
  test(/^# (.*)\.$/m.exec(text)?.[1] ?? name, async (t) => {
    const now = await play(t, name, text);
    played++;
    if (REWRITE === '1') writeFileSync(path, now);
    t.is(now, readFileSync(path, 'utf8'), `${name}: REWRITE=1 writes what has changed`);
  });
}

test.after('the table has what the scenarios show', (t) => {
  // Some scenarios were excluded by --match.
  if (played < names.length) return;
  const path = new URL('fleet-table.txt', import.meta.url);
  if (REWRITE === '1') writeFileSync(path, table.toText());
  t.is(table.toText(), readFileSync(path, 'utf8'), 'REWRITE=1 writes what has changed');
  t.notRegex(table.toText(), /NO SCENARIO/, 'add a scenario, or the reason why it cannot happen');
});
