// Changes the rules of a worker, to valid and invalid ones, and breaks its connection to the control plane meanwhile.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../support/random.ts';
import type { RulesFolder } from '../../support/rules-folder.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { drawFault, drawMs, longestFaultMs, recoveryMs } from './draw-fault.ts';
import type { Findings } from './findings.ts';
import { limit } from './ledger.ts';

export interface RulesChangerDeps {
  readonly rules: RulesFolder;
  /** The connection to the control plane. */
  readonly proxy: TcpProxy;
  /** Versions of the rules, counted over all episodes. */
  readonly versions: { newest: number };
  readonly findings: Findings;
  /** The rules in force, according to the worker. */
  readonly readRules: () => Promise<string>;
}

/** Rules that show their version where they are in force. */
export function rulesOf(version: number): string {
  return `domain: d
descriptors:
  - {key: k, rate_limit: { unit: year, requests_per_unit: ${limit} }}
  - {key: version, rate_limit: { unit: year, requests_per_unit: ${version} }}
`;
}

export function createRulesChanger(deps: RulesChangerDeps) {
  const { rules, proxy, versions, findings } = deps;
  let versionSeen = 0;

  function push(): void {
    findings.goodPushes++;
    rules.replace('d.yaml', rulesOf(++versions.newest));
  }

  function pushBad(): void {
    findings.badPushes++;
    rules.replace('d.yaml', 'domain: [');
  }

  async function readVersion(): Promise<number> {
    const text = await deps.readRules();
    return Number(/version\b.*requests_per_unit=(\d+),/.exec(text)?.[1]);
  }

  async function checkNewest(): Promise<void> {
    const isNewest = async () => (await readVersion()) === versions.newest;
    const isThere = await waitUntil(isNewest, recoveryMs, 50);
    const text = `version ${await readVersion()} instead of ${versions.newest}`;
    findings.check('the newest rules come into force', isThere, text);
  }

  return {
    push,
    /** Waits for the newest rules to be in force. */
    checkNewest,
    /** Runs until `isOver`. */
    async run(random: Random, isOver: () => boolean) {
      while (!isOver()) {
        await sleep(drawMs(random, longestFaultMs));
        if (random.chance(0.6)) {
          const fault = drawFault(random);
          findings.noteFault(`xDS ${fault.kind}`);
          proxy.inject(fault);
        }
        const isGood = random.chance(0.75);
        if (isGood) push();
        else pushBad();
        await sleep(drawMs(random, longestFaultMs));
        proxy.heal();
        if (isGood) await checkNewest();
      }
    },
    /** The rules in force are valid, and no older than before. */
    async checkInForce() {
      const version = await readVersion();
      const isGood = version >= versionSeen && version <= versions.newest;
      const text = `version ${version} after ${versionSeen}, newest ${versions.newest}`;
      findings.check('good rules stay in force', isGood, text);
      versionSeen = version;
    },
  };
}
