// A worker of one configuration under steady load, from its start to its end, while its connections to the store and
// the control plane are broken and repaired at random and its rules change.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Owner } from '../../support/owner.ts';
import { createRandom } from '../../support/random.ts';
import type { RulesFolder } from '../../support/rules-folder.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { createCaller } from '../../support/worker-caller.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { type Configuration, countErrors, startSoakStore, toEnvironment } from './configuration.ts';
import { recoveryMs } from './draw-fault.ts';
import type { Findings } from './findings.ts';
import { createLedger } from './ledger.ts';
import { readProcessSize, showProcessSize } from './process-size.ts';
import { createRulesChanger } from './rules-changer.ts';
import { startSteadyCallers } from './steady-callers.ts';
import { createStoreBreaker } from './store-breaker.ts';

const connections = 4;
const warmUpMs = 3_000;
/** Part of an episode, for the checks at its end. */
const finishMs = 3_000;
/** How much more the worker may hold at the end than after its warm-up. */
const moreFiles = 10;
const moreMegabytes = 100;
/** The pool and one overflow connection; the rules and the link. */
const mostStoreConnections = 5;
const mostXdsConnections = 2;

export interface EpisodeOptions {
  readonly configuration: Configuration;
  readonly name: string;
  readonly seconds: number;
  readonly seed: number;
  readonly rules: RulesFolder;
  readonly xdsPort: number;
  readonly versions: { newest: number };
  readonly findings: Findings;
  readonly log: (text: string) => void;
}

export async function runEpisode(options: EpisodeOptions): Promise<void> {
  const { configuration, name, seed, rules, versions, findings, log } = options;
  const endMs = performance.now() + options.seconds * 1000 - finishMs;
  const isOver = () => performance.now() >= endMs || findings.violations.length > 0;
  const endings: (() => unknown)[] = [];
  const owner: Owner = { teardown: (end) => void endings.unshift(end) };
  const ending = <Thing>(thing: Thing, end: (thing: Thing) => unknown): Thing => {
    endings.unshift(() => end(thing));
    return thing;
  };
  try {
    const store = await startSoakStore(owner, configuration);
    const storeProxy = await startTcpProxy(owner, store.port);
    const xdsProxy = await startTcpProxy(owner, options.xdsPort);
    const changer = createRulesChanger({
      rules,
      proxy: xdsProxy,
      versions,
      findings,
      readRules: () => readPage('rlconfig'),
    });
    changer.push();
    const worker = await startWorkerProcess(owner, {
      env: {
        ...toEnvironment(configuration, storeProxy.port),
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${xdsProxy.port}`,
        CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
        XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
        XDS_CLIENT_BACKOFF_MAX_INTERVAL: '1s',
      },
    });
    const createOne = () => createCaller(owner, `127.0.0.1:${worker.ports.grpc}`);
    const prober = createOne();
    const callers = Array.from({ length: connections }, createOne);
    let errors = 0;
    const readErrors = async () => {
      errors = countErrors(await readPage('stats'));
      return errors;
    };
    const ledger = createLedger({
      prefix: name,
      configuration,
      store,
      findings,
      errors: () => errors,
      readErrors,
    });
    const breaker = createStoreBreaker({
      prefix: name,
      caller: prober,
      store,
      proxy: storeProxy,
      findings,
    });
    const load = startSteadyCallers({
      callers,
      ledger,
      findings,
      isKnownFailure: (text) =>
        configuration.onFailure === 'error' &&
        text.includes(`key-value store 127.0.0.1:${storeProxy.port}: `),
      wasTroubledSince: breaker.wasTroubledSince,
    });
    ending(load, ({ stop }) => stop());

    await sleep(warmUpMs);
    const sizeBefore = readProcessSize(worker.pid);
    await Promise.all([
      breaker.run(createRandom(seed), isOver),
      changer.run(createRandom(seed + 1), isOver),
      watch(),
    ]);
    changer.push();
    await changer.checkNewest();
    await load.stop();
    await ledger.check(true);
    await breaker.checkExact();
    await checkConnections();
    const sizeAfter = readProcessSize(worker.pid);
    const sizes = `${showProcessSize(sizeBefore)} -> ${showProcessSize(sizeAfter)}`;
    if (sizeBefore !== undefined && sizeAfter !== undefined) {
      const hasFewFiles = sizeAfter.files <= sizeBefore.files + moreFiles;
      const isSmall = sizeAfter.megabytes <= sizeBefore.megabytes + moreMegabytes;
      findings.check('nothing leaks', hasFewFiles && isSmall, sizes);
    }
    log(`${configuration.name}: worker ${sizes}`);

    async function readPage(path: string): Promise<string> {
      const url = `http://127.0.0.1:${worker.ports.debug}/${path}`;
      return (await fetch(url, { signal: AbortSignal.timeout(recoveryMs) })).text();
    }

    async function watch(): Promise<void> {
      while (!isOver()) {
        await sleep(500);
        findings.check('the worker lives', worker.ended() === undefined, `${worker.ended()}`);
        await readErrors();
        await changer.checkInForce();
        await ledger.check(false);
      }
    }

    async function checkConnections(): Promise<void> {
      const hasFew = () =>
        storeProxy.open <= mostStoreConnections && xdsProxy.open <= mostXdsConnections;
      const isWell = await waitUntil(hasFew, recoveryMs);
      const text = `${storeProxy.open} to the store, ${xdsProxy.open} to the control plane`;
      findings.check('no connection is left over', isWell, text);
    }
  } finally {
    for (const end of endings) await end();
  }
}
