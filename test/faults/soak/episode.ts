// A worker of one configuration under a steady load, from its start to its end, while the ways to its
// store and to its control plane are broken and repaired at random and its rules change.
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../../support/random.ts';
import type { RulesFolder } from '../../support/rules-folder.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { createCaller } from '../../support/worker-caller.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import {
  type Configuration,
  countTroubles,
  startSoakStore,
  toEnvironment,
} from './configuration.ts';
import { drawFault, drawMs } from './draw-fault.ts';
import type { Findings } from './findings.ts';
import { createLedger, limit } from './ledger.ts';
import { readProcessSize, showProcessSize } from './process-size.ts';

const requestsPerSecond = 100;
const connections = 4;
const warmUpMs = 3_000;
/** Of an episode's time, for the checks at its end. */
const finishMs = 5_000;
/** How long a fault may last at most, and the pause until the next. */
const longestFaultMs = 3_000;
/** Until all is well again after a repair; a second or less by itself, the rest is for a busy machine. */
const recoveryMs = 20_000;
/** A request that was answered within its own bounds may have been asked for so long before. */
const longestAnswerMs = 8_000;
/** What the worker may hold at the end beyond what it held after its warm-up. */
const moreFiles = 10;
const moreMegabytes = 100;

export interface EpisodeOptions {
  readonly configuration: Configuration;
  readonly name: string;
  readonly seconds: number;
  readonly seed: number;
  readonly rules: RulesFolder;
  readonly xdsPort: number;
  /** Of the rules, counted up over all episodes. */
  readonly versions: { newest: number };
  readonly findings: Findings;
  readonly say: (text: string) => void;
}

/** Rules whose version can be seen where they are in force. */
export function rulesOf(version: number): string {
  return `domain: d
descriptors:
  - key: k
    rate_limit: { unit: year, requests_per_unit: ${limit} }
  - key: version
    rate_limit: { unit: year, requests_per_unit: ${version} }
`;
}

export async function runEpisode(options: EpisodeOptions): Promise<void> {
  const { configuration, name, seed, rules, versions, findings, say } = options;
  const endMs = performance.now() + options.seconds * 1000 - finishMs;
  let probes = 0;
  const endings: (() => unknown)[] = [];
  const ending = <Thing>(thing: Thing, end: (thing: Thing) => unknown): Thing => {
    endings.unshift(() => end(thing));
    return thing;
  };
  try {
    const store = ending(await startSoakStore(configuration), ({ stop }) => stop());
    const storeProxy = ending(await startTcpProxy(store.port), ({ close }) => close());
    const xdsProxy = ending(await startTcpProxy(options.xdsPort), ({ close }) => close());
    push();
    const worker = ending(
      await startWorkerProcess({
        env: {
          ...toEnvironment(configuration, storeProxy.port),
          CONFIG_TYPE: 'GRPC_XDS_SOTW',
          CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${xdsProxy.port}`,
          CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
          XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
          XDS_CLIENT_BACKOFF_MAX_INTERVAL: '1s',
        },
        readyTimeoutMs: 60_000,
      }),
      ({ stop }) => stop(),
    );
    const callers = Array.from({ length: connections }, () =>
      ending(createCaller(`127.0.0.1:${worker.ports.grpc}`), (caller) => caller.close()),
    );
    let troubles = 0;
    let versionSeen = 0;
    const readTroubles = async () => {
      troubles = countTroubles(await page('stats'));
      return troubles;
    };
    const ledger = createLedger({
      prefix: name,
      configuration,
      store,
      findings,
      troubles: () => troubles,
      readTroubles,
    });

    const load = startLoad();
    const isLoaded = await waitUntil(() => findings.answers.ok > 0, recoveryMs);
    findings.check('the worker serves', isLoaded, worker.output());
    await sleep(warmUpMs);
    const sizeBefore = readProcessSize(worker.pid);
    /** Times at which the store was not well, on performance.now(). */
    const troubled: { fromMs: number; toMs: number }[] = [];
    await Promise.all([breakStore(), breakRules(), watch()]);

    push();
    await checkVersion();
    await load.stop();
    await ledger.check(true);
    await checkExact();
    await waitUntil(() => storeProxy.open <= 5 && xdsProxy.open <= 1, recoveryMs);
    const open = `${storeProxy.open} to the store, ${xdsProxy.open} to the control plane`;
    const hasFew = storeProxy.open <= 5 && xdsProxy.open <= 1;
    findings.check('no connection is left over', hasFew, open);
    const sizeAfter = readProcessSize(worker.pid);
    const sizes = `${showProcessSize(sizeBefore)} -> ${showProcessSize(sizeAfter)}`;
    if (sizeBefore !== undefined && sizeAfter !== undefined) {
      const hasFewFiles = sizeAfter.files <= sizeBefore.files + moreFiles;
      const isSmall = sizeAfter.megabytes <= sizeBefore.megabytes + moreMegabytes;
      findings.check('nothing leaks', hasFewFiles && isSmall, sizes);
    }
    say(`${configuration.name}: worker ${sizes}`);

    async function page(path: string): Promise<string> {
      const url = `http://127.0.0.1:${worker.ports.debug}/${path}`;
      return (await fetch(url, { signal: AbortSignal.timeout(recoveryMs) })).text();
    }

    async function readVersion(): Promise<number> {
      const text = await page('rlconfig');
      return Number(/version\b.*requests_per_unit=(\d+),/.exec(text)?.[1]);
    }

    function startLoad() {
      const open = new Set<Promise<void>>();
      const beganMs = performance.now();
      let sent = 0;
      const ask = async () => {
        const entry = ledger.next();
        const askedMs = performance.now();
        const answer = await callers[sent % connections]?.decide('d', 'k', entry.value);
        if (answer === undefined) return;
        ledger.note(entry, answer);
        checkAnswer(answer, askedMs);
      };
      const timer = setInterval(() => {
        while (sent < ((performance.now() - beganMs) / 1000) * requestsPerSecond) {
          const asking = ask().finally(() => open.delete(asking));
          open.add(asking);
          sent++;
        }
      }, 10);
      const stop = async () => {
        clearInterval(timer);
        await Promise.all(open);
      };
      ending(stop, (end) => end());
      return { stop };
    }

    function checkAnswer(answer: string, askedMs: number): void {
      const tookMs = Math.round(performance.now() - askedMs);
      const text = `${answer} after ${tookMs} ms`;
      findings.check('answers come in time', tookMs <= longestAnswerMs, text);
      if (!answer.startsWith('failed')) return;
      const isNamed =
        configuration.onFailure === 'error' &&
        answer.includes(`key-value store 127.0.0.1:${storeProxy.port}: `);
      findings.check('a failure names the store', isNamed, text);
      const nowMs = performance.now();
      const isInTrouble = troubled.some(({ fromMs, toMs }) => fromMs <= nowMs && askedMs <= toMs);
      findings.check('no failure without a fault', isInTrouble, text);
    }

    function isOver(): boolean {
      return performance.now() >= endMs || findings.violations.length > 0;
    }

    function inject(proxy: TcpProxy, what: string, random: ReturnType<typeof createRandom>): void {
      const fault = drawFault(random);
      findings.noteFault(`${what} ${fault.kind}`);
      proxy.inject(fault);
    }

    async function breakStore(): Promise<void> {
      const random = createRandom(seed);
      while (!isOver()) {
        await sleep(drawMs(random, longestFaultMs));
        const trouble = { fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
        troubled.push(trouble);
        inject(storeProxy, 'store', random);
        await sleep(drawMs(random, longestFaultMs));
        storeProxy.heal();
        const healedMs = performance.now();
        const isWell = await becomesWell();
        trouble.toMs = performance.now();
        const tookMs = Math.round(trouble.toMs - healedMs);
        findings.longestRecoveryMs = Math.max(findings.longestRecoveryMs, tookMs);
        findings.check('the store counts again after a repair', isWell, `not in ${tookMs} ms`);
      }
    }

    /** Several counters in a row are counted: one connection may be well before another. */
    function becomesWell(): Promise<boolean> {
      let inARow = 0;
      return waitUntil(async () => {
        const value = `${name}probe${probes++}`;
        await callers[0]?.decide('d', 'k', value);
        const isCounted = await waitUntil(async () => (await store.countOf(value)) === 1, 500);
        inARow = isCounted ? inARow + 1 : 0;
        return inARow === 5;
      }, recoveryMs);
    }

    async function breakRules(): Promise<void> {
      const random = createRandom(seed + 1);
      while (!isOver()) {
        await sleep(drawMs(random, longestFaultMs));
        if (random.chance(0.6)) inject(xdsProxy, 'xDS', random);
        const isGood = random.chance(0.75);
        if (isGood) push();
        else pushBad();
        await sleep(drawMs(random, longestFaultMs));
        xdsProxy.heal();
        if (isGood) await checkVersion();
      }
    }

    async function checkVersion(): Promise<void> {
      const isThere = await waitUntil(
        async () => (await readVersion()) === versions.newest,
        recoveryMs,
        50,
      );
      const text = `version ${await readVersion()} instead of ${versions.newest}`;
      findings.check('the newest rules come into force', isThere, text);
    }

    async function watch(): Promise<void> {
      while (!isOver()) {
        await sleep(500);
        findings.check('the worker lives', worker.ended() === undefined, `${worker.ended()}`);
        await readTroubles();
        const version = await readVersion();
        const isGood = version >= versionSeen && version <= versions.newest;
        const text = `version ${version} after ${versionSeen}, newest ${versions.newest}`;
        findings.check('good rules stay in force', isGood, text);
        versionSeen = version;
        await ledger.check(false);
      }
    }

    /** A busy machine may have the worker take a slow memory cache for an absent one: then again. */
    async function checkExact(): Promise<void> {
      let text = '';
      const isExact = await waitUntil(async () => {
        const value = `${name}exact${probes++}`;
        const answers: unknown[] = [];
        for (let hit = 0; hit < limit + 5; hit++) {
          answers.push(await callers[0]?.decide('d', 'k', value));
        }
        const ok = answers.filter((answer) => answer === 'OK').length;
        const isCounted = await waitUntil(
          async () => (await store.countOf(value)) === limit + 5,
          2_000,
        );
        text = `${ok} OK of ${limit}, ${await store.countOf(value)} of ${limit + 5} counted`;
        return isCounted && ok === limit;
      }, recoveryMs);
      findings.check('in the end all is exact', isExact, text);
    }
  } finally {
    for (const end of endings) await end();
  }

  function push(): void {
    findings.goodPushes++;
    rules.replace('d.yaml', rulesOf(++versions.newest));
  }

  function pushBad(): void {
    findings.badPushes++;
    rules.replace('d.yaml', 'domain: [');
  }
}
