// What every measurement needs: the stores, the folder of rules and certificates, the processors, and a way to start a
// service and put load on it.
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { caCertificate, serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { startGenerator } from './generator.ts';
import type { LoadMoment, LoadOptions, LoadResult } from './load/load-run.ts';
import { divideProcessors } from './processors.ts';
import { rules, type Scenario } from './scenario.ts';
import { type RunningService, type Service, startService } from './service.ts';
import { type Store, startMemcached, startRedis } from './store.ts';

export interface Load {
  /** Undefined: as fast as the service responds. */
  readonly ratePerSecond: number | undefined;
  readonly warmUpMs: number;
  readonly measuredMs: number;
  readonly keyOrder?: LoadOptions['keyOrder'];
}

export interface LoadOutcome extends LoadResult {
  /** Commands of the store per decision: in each half of the measured time, and in total. */
  readonly storeCommands: {
    readonly firstHalf: number;
    readonly secondHalf: number;
    readonly total: number;
  };
}

export type Bench = Awaited<ReturnType<typeof createBench>>;

export interface BenchOptions {
  readonly connections: number;
  readonly streams: number;
}

const okCode = 1;

export async function createBench({ connections, streams }: BenchOptions) {
  const processors = divideProcessors();
  const redis = await startRedis();
  let memcached: Promise<Store> | undefined;
  const findStore = async (scenario: Scenario) => {
    if (scenario.store === 'redis') return redis;
    memcached ??= startMemcached();
    return memcached;
  };
  const generator = startGenerator();
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-bench-'));
  // Also when a signal ends the run.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const certificateFile = join(folder, 'server.pem');
  const keyFile = join(folder, 'server.key');
  await mkdir(join(folder, 'rules', 'config'), { recursive: true });
  await writeFile(join(folder, 'rules', 'config', 'bench.yaml'), rules);
  await writeFile(certificateFile, serverCertificate.cert);
  await writeFile(keyFile, serverCertificate.key);

  return {
    redis,
    /** Which program runs on which processor. */
    processors: processors.description,
    /** Starts a service on an empty store, reached at `storeAddress` if that is given. */
    async start(service: Service, scenario: Scenario, storeAddress?: string) {
      const store = await findStore(scenario);
      await store.clear();
      const tls = {
        GRPC_SERVER_USE_TLS: 'true',
        GRPC_SERVER_TLS_CERT: certificateFile,
        GRPC_SERVER_TLS_KEY: keyFile,
      };
      return startService(service, processors.servicePrefix, {
        RUNTIME_ROOT: folder,
        RUNTIME_SUBDIRECTORY: 'rules',
        ...store.toEnvironment(storeAddress ?? store.address),
        LOCAL_CACHE_SIZE_IN_BYTES: '0',
        ...scenario.environment,
        ...(scenario.isTls ? tls : {}),
      });
    },
    async load(running: RunningService, service: Service, scenario: Scenario, load: Load) {
      const store = await findStore(scenario);
      const moments = new Map<LoadMoment, Promise<{ answered: number; commands: number }>>();
      const result = await generator.run(
        {
          port: running.grpcPort,
          tlsCa: scenario.isTls ? caCertificate : undefined,
          connections,
          streams,
          descriptorKeys: scenario.descriptorKeys,
          distinctKeys: scenario.distinctKeys,
          keyOrder: load.keyOrder ?? 'random',
          hasTrace: scenario.hasTrace,
          ratePerSecond: load.ratePerSecond,
          warmUpMs: load.warmUpMs,
          measuredMs: load.measuredMs,
          pids: running.pids,
          expected:
            service.kind === 'yardstick'
              ? { overallCode: okCode, statuses: undefined }
              : { overallCode: scenario.expectedCode, statuses: scenario.descriptorKeys.length },
        },
        (moment, answered) => {
          moments.set(
            moment,
            store.countCommands().then((commands) => ({ answered, commands })),
          );
        },
      );
      const perDecision = async (from: LoadMoment, to: LoadMoment): Promise<number> => {
        const [before, after] = [await moments.get(from), await moments.get(to)];
        if (before === undefined || after === undefined) return Number.NaN;
        return (after.commands - before.commands) / (after.answered - before.answered);
      };
      return {
        ...result,
        storeCommands: {
          firstHalf: await perDecision('begin', 'half'),
          secondHalf: await perDecision('half', 'end'),
          total: await perDecision('begin', 'end'),
        },
      };
    },
    async stop() {
      generator.stop();
      await redis.stop();
      await (await memcached)?.stop();
    },
  };
}
