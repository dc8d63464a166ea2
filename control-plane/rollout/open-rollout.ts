// A rollout as the settings want it: with peers its record is in the store, and one control plane of all
// decides; without, it is in the state directory.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Audit } from '../admin/audit.ts';
import { readTokenFile } from '../command/token.ts';
import type { Peers } from '../peers/peers.ts';
import type { ControlPlaneSettings } from '../settings.ts';
import { type OpenStoreDeps, openSharedText } from '../store/open-store.ts';
import type { Revision } from '../store/revision.ts';
import type { ConfigStore } from '../store/store.ts';
import { factsJson, type RolloutFacts } from './facts.ts';
import { createLeadership, directoryTiming, gitTiming } from './leader.ts';
import { openOwnText } from './own-text.ts';
import type { AskPeers } from './peer-watch.ts';
import type { RolloutPlan } from './plan.ts';
import { isOpen } from './record.ts';
import { createRollout, type Rollout, type RolloutDeps } from './rollout.ts';

export interface OpenRolloutDeps extends OpenStoreDeps {
  readonly plan: RolloutPlan;
  readonly settings: ControlPlaneSettings;
  readonly store: ConfigStore;
  /** Undefined where this is the only control plane. */
  readonly peers: Peers | undefined;
  readonly audit: Audit;
}

export interface OpenRollout {
  /** Reads the record. Resolves within some seconds; never rejects. */
  read(): Promise<void>;
  /** The revision that was in force before this one, whose rollout has not come to its end. */
  findBase(revisionId: string): Promise<Revision | undefined>;
  create(sources: Pick<RolloutDeps, 'snapshots' | 'workers' | 'readTraffic'>): Rollout;
  /** Resolves when nothing is being written any more. */
  close(): Promise<void>;
}

const readMs = 5_000;

export function openRollout(deps: OpenRolloutDeps): OpenRollout {
  const { settings, store, peers, log, clock } = deps;
  const ownText = openOwnText(settings.stateDirectory, store.description, log);
  const isDirectory = settings.config.kind === 'directory';
  const leadership = createLeadership({
    shared: peers && {
      text: openSharedText(deps, 'rollout'),
      timing: isDirectory ? directoryTiming : gitTiming,
    },
    ownText,
    id: randomUUID(),
    name: `${hostname()}:${settings.admin.address.port}`.slice(-300),
    log,
    clock,
  });

  return {
    async read() {
      const late = Promise.withResolvers<void>();
      const cancel = clock.after(readMs, late.resolve);
      await Promise.race([leadership.start(), late.promise]);
      cancel();
    },
    async findBase(revisionId) {
      const { record } = leadership;
      if (record?.revision !== revisionId || record.outcome === 'in_force') return undefined;
      return record.base === '' ? undefined : store.readRevision(record.base);
    },
    create: (sources) =>
      createRollout({
        ...sources,
        plan: deps.plan,
        leadership,
        askPeers: peers && createAskPeers(peers, settings.peersTokenFile),
        lookAtStore: store.trigger,
        onEvent({ revision, what }) {
          deps.audit({
            who: 'rollout',
            address: undefined,
            what,
            requestId: randomUUID(),
            before: revision,
            after:
              leadership.record && isOpen(leadership.record) ? revision : leadership.record?.base,
            outcome: 'done',
          });
        },
        log,
        clock,
      }),
    async close() {
      await leadership.stop();
      await ownText.settled();
    },
  };
}

function createAskPeers(peers: Peers, tokenFile: string | undefined): AskPeers {
  return async (record) => {
    const token = tokenFile === undefined ? undefined : await readTokenFile(tokenFile);
    if (token?.ok === false) {
      return [{ url: 'any', error: token.message, last: undefined }];
    }
    const path = `/rollouts/workers?record=${encodeURIComponent(record)}`;
    const countWorkers = ({ workers }: RolloutFacts) => workers.length;
    return peers.ask({ method: 'GET', path, countWorkers }, factsJson, token?.value);
  };
}
