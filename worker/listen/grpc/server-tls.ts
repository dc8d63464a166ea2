// The certificates that the gRPC port serves with: read at the start, and taken up anew when their
// files change, while connections stay (reference-behaviour 3.6).
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import {
  readTlsFiles,
  type TlsFiles,
  type TlsMaterial,
  type TlsWatch,
  watchTlsFiles,
} from '../../../shared/tls.ts';
import type { GrpcTransport, ServerCertificates } from './transport.ts';

/** Paths; '' where there is no such file. */
export interface ServerTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string;
}

/** How soon a changed file is in use. */
const intervalMs = 1_000;

export interface ServerTls {
  readonly certificates: ServerCertificates;
  /** Keeps the transport's certificates those of the files. */
  watch(transport: Pick<GrpcTransport, 'replaceCertificates'>): TlsWatch;
}

/** Rejects with AppError `cannot_start` that names the file at fault. */
export async function readServerTls(
  paths: ServerTlsFiles,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<ServerTls> {
  const files: TlsFiles = {
    cert: paths.certFile,
    key: paths.keyFile,
    ca: paths.clientCaFile === '' ? undefined : paths.clientCaFile,
  };
  const reading = await readTlsFiles(files);
  if (!reading.ok) {
    throw new AppError(
      'cannot_start',
      `cannot serve gRPC over TLS: ${reading.problem}; ` +
        'GRPC_SERVER_TLS_CERT, GRPC_SERVER_TLS_KEY and GRPC_CLIENT_TLS_CACERT name the files',
    );
  }
  return {
    certificates: toCertificates(reading.material),
    watch: (transport) =>
      watchTlsFiles({
        files,
        material: reading.material,
        clock,
        intervalMs,
        onChange(material) {
          try {
            transport.replaceCertificates(toCertificates(material));
            log.info(`The gRPC port has taken up the certificates of ${paths.certFile}`);
          } catch (error) {
            log.error(`The gRPC port keeps its certificates: ${errorText(error)}`);
          }
        },
        onProblem: (problem) => log.error(`The gRPC port keeps its certificates: ${problem}`),
      }),
  };
}

function toCertificates({ cert, key, ca }: TlsMaterial): ServerCertificates {
  return { cert: cert ?? '', key: key ?? '', clientCa: ca };
}
