// The certificates of a port: read at the start, and reloaded when their files change, without closing
// connections (behaviour: renewed-certificates).
import type { Clock } from '../../shared/clock.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { ServerCertificates } from '../../shared/grpc/transport.ts';
import type { Log } from '../../shared/log.ts';
import {
  readTlsFiles,
  type TlsFiles,
  type TlsMaterial,
  type TlsWatch,
  watchTlsFiles,
} from '../../shared/tls.ts';
import type { Metrics } from '../metrics.ts';
import type { ListenerName } from './listeners.ts';

/** Paths; '' or undefined where there is no such file. */
export interface ServerTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile?: string;
}

/** How soon a changed file is in use. */
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
  /** For the port whose certificates are counted as `certs.*` (behaviour: statistic-names). */
  readonly metrics?: Metrics;
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
  const attempts = metrics?.counter('certs.load_attempts');
  const failures = metrics?.counter('certs.load_failures');
  const fileCount = Object.values(files).filter((path) => path !== undefined).length;
  metrics?.gauge('certs.num_values').set(fileCount);
  const keepOld = (problem: string) => {
    failures?.add(1);
    log.error(`The ${name} port keeps its certificates: ${problem}`);
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
  return {
    certificates: toCertificates(reading.material),
    watch: (replace) =>
      watchTlsFiles({
        files,
        material: reading.material,
        clock,
        intervalMs: tlsIntervalMs,
        onChange(material) {
          attempts?.add(1);
          try {
            replace(toCertificates(material));
            log.notice(`The ${name} port now uses the certificates of ${paths.certFile}`);
          } catch (error) {
            keepOld(errorText(error));
          }
        },
        onProblem(problem) {
          attempts?.add(1);
          keepOld(problem);
        },
      }),
  };
}

function toCertificates({ cert, key, ca }: TlsMaterial): ServerCertificates {
  return { cert: cert ?? '', key: key ?? '', clientCa: ca };
}
