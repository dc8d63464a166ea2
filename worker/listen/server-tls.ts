// The certificates of a port: read at the start, and reloaded when their files change, without closing
// connections (behaviour: renewed-certificates).
import type { Clock } from '../../shared/clock.ts';
import { AppError } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import {
  findExpiryMs,
  readTlsFiles,
  type TlsFiles,
  type TlsMaterial,
  TlsWatch,
} from '../../shared/tls.ts';
import type { ServerCertificates } from '../grpc/transport.ts';
import type { Metrics } from '../metrics.ts';
import { type ListenerName, listeners } from './listeners.ts';

/** Paths; '' or undefined without a file. */
export interface ServerTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile?: string;
}

/** The time until a changed file is used. */
export const tlsIntervalMs = 1_000;

const settingNames: Readonly<Record<'gRPC' | 'HTTP', string>> = {
  gRPC: 'GRPC_SERVER_TLS_CERT, GRPC_SERVER_TLS_KEY and GRPC_CLIENT_TLS_CACERT',
  HTTP: 'HTTP_SERVER_TLS_CERT and HTTP_SERVER_TLS_KEY',
};

export interface ServerTls {
  readonly certificates: ServerCertificates;
  /** Keeps a server's certificates up to date with the files; `replace` throws on unusable ones. */
  watch(replace: (certificates: ServerCertificates) => void): TlsWatch;
}

export interface ServerTlsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Rejects with AppError `cannot_start` that names the faulty file. */
export async function readServerTls(
  paths: ServerTlsFiles,
  name: ListenerName,
  { clock, log, metrics }: ServerTlsDeps,
): Promise<ServerTls> {
  const files: TlsFiles = {
    cert: paths.certFile,
    key: paths.keyFile,
    ca: paths.clientCaFile || undefined,
  };
  // Only the gRPC port's loads are counted (behaviour: statistic-names).
  const isCounted = name === 'gRPC';
  const attempts = isCounted ? metrics.counter('certs.load_attempts') : undefined;
  const failures = isCounted ? metrics.counter('certs.load_failures') : undefined;
  const fileCount = Object.values(files).filter((path) => path !== undefined).length;
  if (isCounted) metrics.gauge('certs.num_values').set(fileCount);
  const gauges = gaugesOf(name);
  const expiry = metrics.gauge(gauges.expiry);
  const isRefused = metrics.gauge(gauges.isRefused);
  const retainOld = (problem: string) => {
    failures?.add(1);
    log.error(`The ${name} port continues with its previous certificates: ${problem}`);
  };

  attempts?.add(1);
  const reading = await readTlsFiles(files);
  if (!reading.ok) {
    throw new AppError(
      'cannot_start',
      `cannot serve ${name} over TLS: ${reading.problem}; ` +
        `${settingNames[name === 'gRPC' ? 'gRPC' : 'HTTP']} name the files`,
    );
  }
  expiry.set((findExpiryMs(reading.material) ?? 0) / 1000);
  return {
    certificates: toCertificates(reading.material),
    watch(replace) {
      const watch = new TlsWatch({
        files,
        material: reading.material,
        clock,
        intervalMs: tlsIntervalMs,
        onChange(material) {
          replace(toCertificates(material));
          attempts?.add(1);
          log.notice(`The ${name} port now uses the certificates of ${paths.certFile}`);
        },
        onProblem(problem) {
          attempts?.add(1);
          retainOld(problem);
        },
      });
      metrics.beforeReading(() => {
        expiry.set((watch.expiryMs ?? 0) / 1000);
        isRefused.set(Number(watch.problem !== undefined));
      });
      return watch;
    },
  };
}

function gaugesOf(name: ListenerName): Readonly<Record<'expiry' | 'isRefused', string>> {
  const prefix = `ratelimit.certificate.${name.toLowerCase()}`;
  return {
    expiry: `${prefix}.not_after_timestamp_seconds`,
    isRefused: `${prefix}.renewal_refused`,
  };
}

/** Human-readable: a line for each port that has certificates, in whichever process. */
export function describeCertificates(stats: ReadonlyMap<string, number>): readonly string[] {
  return Object.values(listeners).flatMap(({ listener }) => {
    const { expiry, isRefused } = gaugesOf(listener);
    const seconds = stats.get(expiry);
    // 0 after the processes that had them have ended.
    if (!seconds) return [];
    const until = `valid until ${new Date(seconds * 1000).toISOString()}`;
    const refusal = stats.get(isRefused)
      ? '; the files have changed and cannot be used, see the log'
      : '';
    return [`certificates of the ${listener} port: ${until}${refusal}`];
  });
}

function toCertificates({ cert, key, ca }: TlsMaterial): ServerCertificates {
  return { cert: cert ?? '', key: key ?? '', clientCa: ca };
}
