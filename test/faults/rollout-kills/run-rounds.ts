// Real control planes that are killed, ended or frozen at the steps of rollouts: two of them on one directory or Git
// repository, with six workers. Each round rolls out one revision, good or bad, breaks a control plane at some moment,
// repairs it, and waits for the outcome.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../../support/control-plane-process.ts';
import { startEtcdServer } from '../../support/etcd-server.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createGitRepository } from '../../support/git-repository.ts';
import { createRandom, type Random } from '../../support/random.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';
import { type LastingWorker, startLastingWorker } from './lasting-worker.ts';

/** Rules in Git together with their record, or in a directory with the record in an engine. */
export const sources = ['redis', 'etcd', 'git'] as const;
export const faults = ['SIGKILL', 'SIGTERM', 'SIGSTOP'] as const;
export type Source = (typeof sources)[number];
export type Fault = (typeof faults)[number];

export interface RoundsOptions {
  readonly source: Source;
  readonly fault: Fault;
  readonly rounds: number;
  readonly seed: number;
  readonly log: (line: string) => void;
}

export interface RoundsResult {
  readonly good: number;
  readonly bad: number;
  /** From the change of the rules to its outcome on all workers and control planes. */
  readonly worstSeconds: number;
  /** From the end of the repair. */
  readonly worstAfterRepairSeconds: number;
  /** The most workers that were sent a bad revision. */
  readonly mostNotified: number;
  /** Violations. */
  readonly findings: readonly string[];
}

/** Of six workers: one, then three, then all. */
const plan = '20%:2s,50%:2s';
const workerCount = 6;
/** A bad revision does not get beyond the first step. */
const maxReported = 1;
const momentMs = 90_000;
const outcomeMs = 180_000;
const frozenMs = 15_000;
/** How long the control plane is away: shorter than a term, and longer. */
const awayMs: Readonly<Record<Source, readonly number[]>> = {
  redis: [0, 1_000, 12_000],
  etcd: [0, 1_000, 18_000],
  git: [0, 1_000, 36_000],
};

interface Fleet {
  readonly planes: readonly ControlPlaneProcess[];
  readonly workers: readonly LastingWorker[];
  put(name: string): void;
  /** Bad revisions of earlier rounds, which every control plane has taken back: no worker is ever sent them again. */
  readonly past: string[];
}

/** Ends at the first violation. */
export async function runRounds(options: RoundsOptions): Promise<RoundsResult> {
  const { source, fault, rounds, seed, log } = options;
  const random = createRandom(seed);
  const endings: (() => unknown)[] = [];
  const result = { good: 0, bad: 0, worstSeconds: 0, worstAfterRepairSeconds: 0, mostNotified: 0 };
  const findings: string[] = [];
  let fleet: Fleet | undefined;
  try {
    fleet = await startFleet({ teardown: (end) => void endings.unshift(end) }, source);
    const isGoodFirst = random.chance(0.5);
    for (let index = 1; index <= rounds; index++) {
      const isGood = (index % 2 === 1) === isGoodFirst;
      const name = `${isGood ? 'good' : random.pick(['bad', 'refused'])}-${index}-`;
      const round = await runRound(fleet, { name, isGood, source, fault, random });
      log(`${source}, ${fault} ${index} of ${rounds}, ${name}: ${round.text}`);
      if (round.finding !== undefined) {
        findings.push(`${source}, ${fault} ${index}, --seed ${seed}: ${round.finding}`);
        break;
      }
      if (!isGood) result.mostNotified = Math.max(result.mostNotified, round.notified);
      result[isGood ? 'good' : 'bad']++;
      result.worstSeconds = Math.max(result.worstSeconds, round.seconds);
      result.worstAfterRepairSeconds = Math.max(
        result.worstAfterRepairSeconds,
        round.afterRepairSeconds,
      );
    }
  } catch (error) {
    findings.push(`${source}, ${fault}, --seed ${seed}: ${String(error)}`);
  } finally {
    if (findings.length > 0)
      for (const plane of fleet?.planes ?? []) log(plane.output().slice(-outputShown));
    for (const end of endings) await end();
  }
  return { ...result, findings };
}

const outputShown = 8_000;

async function startFleet(
  t: { teardown(end: () => unknown): void },
  source: Source,
): Promise<Fleet> {
  const first = { 'a.yaml': ruleText('first', 1) };
  const { flags, put } =
    source === 'git' ? openGit(t, first) : await openDirectory(t, source, first);
  const ports = [await freePort(), await freePort()];
  const planes = await Promise.all(
    ports.map((adminPort, index) =>
      createControlPlaneProcess(t, {
        flags: [
          ...flags,
          ...['--rollout', plan, '--peers', `http://127.0.0.1:${ports[1 - index]}`],
        ],
        adminPort,
      }),
    ),
  );
  await Promise.all(planes.map((plane) => plane.start()));
  const addresses = planes.map(({ xdsAddress }) => xdsAddress);
  const workers = Array.from({ length: workerCount }, (_, index) =>
    startLastingWorker(t, `w-${index}`, index % 2 === 0 ? addresses : [...addresses].reverse()),
  );
  await eventually('all have the first', () => workers.every((each) => each.has('first')));
  return { planes, workers, past: [], put: (name) => put({ 'a.yaml': ruleText(name, 1) }) };
}

type Files = Readonly<Record<'a.yaml', string>>;

async function openDirectory(
  t: { teardown(end: () => unknown): void },
  source: Exclude<Source, 'git'>,
  first: Files,
) {
  const rules = createRulesFolder(t);
  const record =
    source === 'redis'
      ? `redis://${(await startRedisServer(t)).url}`
      : `etcd:http://127.0.0.1:${(await startEtcdServer(t)).port}`;
  const put = (files: Files) => rules.replace('a.yaml', files['a.yaml']);
  put(first);
  return { flags: ['--config-dir', rules.path, '--record', record], put };
}

function openGit(t: { teardown(end: () => unknown): void }, first: Files) {
  const repository = createGitRepository(t);
  repository.push(first);
  return {
    flags: ['--git', repository.url, '--git-poll', '2s'],
    put: (files: Files) => void repository.push(files),
  };
}

interface Round {
  readonly name: string;
  readonly isGood: boolean;
  readonly source: Source;
  readonly fault: Fault;
  readonly random: Random;
}

interface RoundResult {
  readonly text: string;
  readonly seconds: number;
  readonly afterRepairSeconds: number;
  readonly notified: number;
  readonly finding: string | undefined;
}

async function runRound(
  { planes, workers, put, past }: Fleet,
  { name, isGood, source, fault, random }: Round,
): Promise<RoundResult> {
  const count = () => workers.filter((each) => each.has(name)).length;
  const notified = () =>
    workers.filter((each) => each.notified.some((text) => text.includes(name)));
  const outcomes = () => Promise.all(planes.map((plane) => isOver(plane, name, isGood)));
  const atLeast = random.pick(isGood ? [0, 1, 1, 3, 3, 6] : [0, 1]);
  const moreMs = random.below(2_500);
  const index = random.below(planes.length);
  const plane = planes[index] as ControlPlaneProcess;
  const absentMs = random.pick(awayMs[source]);
  const notifiedBefore = workers.map(({ notified }) => notified.length);
  const beganMs = performance.now();
  const secondsSince = (ms: number) => (performance.now() - ms) / 1000;
  put(name);
  await eventually(`${atLeast} are notified`, () => notified().length >= atLeast, momentMs);
  await sleep(moreMs);
  const state = await describeState(plane, name);
  const moment = `${secondsSince(beganMs).toFixed(1)} s on, ${state}, ${notified().length} notified`;
  await breakAndRepair(plane, fault, absentMs);
  const repairedMs = performance.now();
  let finding: string | undefined;
  try {
    await eventually(
      isGood ? 'it arrives everywhere' : 'it is taken back everywhere',
      async () => count() === (isGood ? workerCount : 0) && (await outcomes()).every(Boolean),
      outcomeMs,
    );
  } catch (error) {
    finding = `${name} ${moment}: ${String(error)}; ${count()} have it`;
  }
  const { length: notifiedInAll } = notified();
  if (!isGood && notifiedInAll > maxReported)
    finding = `${name} ${moment}: ${notifiedInAll} had it`;
  const isPast = (text: string) => past.some((each) => text.includes(each));
  const again = workers.find((each, at) => each.notified.slice(notifiedBefore[at]).some(isPast));
  finding ??= again && `${again.id} was offered a bad revision that was taken back`;
  if (!isGood) past.push(name);
  const seconds = secondsSince(beganMs);
  const afterRepairSeconds = secondsSince(repairedMs);
  const away = fault === 'SIGSTOP' ? frozenMs : absentMs;
  const text = `${moment}, away for ${away / 1000} s; ${finding ?? `over after ${seconds.toFixed(1)} s`}`;
  return { text, seconds, afterRepairSeconds, notified: notifiedInAll, finding };
}

async function breakAndRepair(
  plane: ControlPlaneProcess,
  fault: Fault,
  absentMs: number,
): Promise<void> {
  if (fault === 'SIGSTOP') {
    await plane.standStill();
    await sleep(frozenMs);
    plane.resume();
    return;
  }
  await plane.end(fault);
  await sleep(absentMs);
  await plane.start();
}

async function describeState(plane: ControlPlaneProcess, name: string): Promise<string> {
  const { rollout } = (await plane.fetch('/rollouts')).body;
  if (rollout === null) return `${name} not on trial`;
  const { step, steps, phase, leader } = rollout;
  return `step ${step} of ${steps} (${phase}), ${leader?.isThis === true ? 'the leader' : 'not the leader'}`;
}

/** Whether this control plane reports it too. */
async function isOver(plane: ControlPlaneProcess, name: string, isGood: boolean): Promise<boolean> {
  const { rollout, last } = (await plane.fetch('/rollouts')).body;
  if (rollout !== null) return false;
  const { newest, inForce } = (await plane.fetch('/status')).body;
  const hasName = (await plane.fetch(`/rules/${name}`)).status === 200;
  if (isGood) return hasName && newest?.id === inForce?.id;
  return last?.outcome === 'taken_back' && last.revision === newest?.id && !hasName;
}
