// Opens a rollout as configured: its record is in an engine, or beside the rules in Git, with a copy in the state
// directory; with rules in a directory, the record is in the state directory alone.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { ComparedClocks } from '../compared-clocks.ts';
import type { Audit } from '../history/activity/audit.ts';
import { type EngineSettings, openEngineText } from '../record/engines/open-engine.ts';
import { MovingText } from '../record/moving-text.ts';
import type { Outcomes } from '../record/outcomes.ts';
import { OwnTextFile } from '../record/own-text.ts';
import { createExchangeAsk } from '../record/peers/exchange.ts';
import type { Peers } from '../record/peers/peers.ts';
import { openRolloutOf } from '../record/record.ts';
import {
  engineTiming,
  gitTiming,
  RecordKeeper,
  type RecordKeeperDeps,
  unsharedTiming,
} from '../record/record-keeper.ts';
import { toRevisionMemory } from '../record/record-state.ts';
import type { RevisionMemory } from '../snapshot/admission.ts';
import { type OpenStoreDeps, openSharedText, type StoreSettings } from '../store/open-store.ts';
import type { ConfigStore } from '../store/store.ts';
import { factsJson } from './facts.ts';
import { type AskPeers, Rollout, type RolloutDeps } from './rollout.ts';

export interface RolloutSettings extends StoreSettings {
  /** The steps; '' if none are configured. */
  readonly rollout: string;
  /** The location of the record; undefined: beside the rules in Git, or in the state directory. */
  readonly record: EngineSettings | undefined;
  /** The file of the token for peers; undefined: there is none. */
  readonly peersTokenFile: string | undefined;
  readonly admin: { readonly address: { readonly port: number } };
}

export interface OpenRolloutDeps extends OpenStoreDeps {
  readonly settings: RolloutSettings;
  readonly store: ConfigStore;
  /** Undefined if this is the only control plane. */
  readonly peers: Peers | undefined;
  /** The clocks that are compared with the clock of an engine. */
  readonly clocks: ComparedClocks;
  readonly audit: Audit;
  /** Sends notifications of outcomes; undefined if none are configured. */
  readonly onOutcome: ((outcomes: Outcomes) => void) | undefined;
}

export interface OpenRollout {
  memory(): RevisionMemory;
  /** Reads the record. Resolves within some seconds; never rejects. */
  read(): Promise<void>;
  create(sources: Pick<RolloutDeps, 'snapshots' | 'workers' | 'readCounted'>): Rollout;
  /** Resolves when no write is under way. */
  close(): Promise<void>;
}

const readMs = 5_000;

export function openRollout(deps: OpenRolloutDeps): OpenRollout {
  const { settings, store, peers, log, clock } = deps;
  const { config, record, stateDirectory } = settings;
  const own = new OwnTextFile(
    {
      stateDirectory,
      store: store.description,
      ...(config.kind === 'directory' && { rulesDirectory: config.directory }),
      isInGit: config.kind === 'git' && record === undefined,
    },
    log,
  );
  const keeper = new RecordKeeper({
    ...openEngine(deps),
    own,
    steps: settings.rollout,
    id: randomUUID(),
    name: `${hostname()}:${settings.admin.address.port}`.slice(-300),
    ...(deps.onOutcome && { onOutcome: deps.onOutcome }),
    log,
    clock,
  });

  return {
    memory: () => toRevisionMemory(keeper.state),
    async read() {
      const late = Promise.withResolvers<void>();
      const cancel = clock.after(readMs, late.resolve);
      await Promise.race([keeper.start(), late.promise]);
      cancel();
    },
    create: (sources) =>
      new Rollout({
        ...sources,
        reportsOutcomes: deps.onOutcome !== undefined,
        keeper,
        askPeers: peers && createAskPeers(peers, settings.peersTokenFile),
        store,
        drawId: randomUUID,
        onEvent({ revision, what }) {
          const { record } = keeper;
          deps.audit({
            who: 'rollout',
            address: undefined,
            what,
            requestId: randomUUID(),
            before: revision,
            after: openRolloutOf(record) ? revision : record.inForce[0]?.revision,
            outcome: 'done',
          });
        },
        log,
        clock,
      }),
    async close() {
      await keeper.stop();
      await own.settled();
    },
  };
}

function openEngine(deps: OpenRolloutDeps): Pick<RecordKeeperDeps, 'shared' | 'timing'> {
  const { record, config } = deps.settings;
  const inGit = config.kind === 'git' ? openSharedText(deps, config, 'rollout') : undefined;
  if (record === undefined) return { shared: inGit, timing: inGit ? gitTiming : unsharedTiming };
  const engine = openEngineText(record, deps.clocks);
  return { shared: inGit ? new MovingText(engine, inGit) : engine, timing: engineTiming };
}

function createAskPeers(peers: Peers, tokenFile: string | undefined): AskPeers {
  const ask = createExchangeAsk(peers, tokenFile);
  return (record, undoes) => {
    const undo = undoes ? '&undoes=true' : '';
    const path = `/rollouts/workers?record=${encodeURIComponent(record)}${undo}`;
    return ask({ method: 'GET', path }, factsJson);
  };
}
