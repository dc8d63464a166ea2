// The TLS credentials of commands that are gRPC clients themselves. Separate from the options, since most commands do
// not load gRPC.
import type { ChannelCredentials } from '@grpc/grpc-js';
import { createTlsCredentials } from '../../shared/grpc/client-credentials.ts';
import { withTrustedCas } from '../../shared/tls.ts';
import { readTlsOptions, type TlsOptions } from './tls-options.ts';

/** The reason if they cannot be used, including the option or the file. */
export async function readCredentials(options: TlsOptions): Promise<ChannelCredentials | string> {
  const reading = await readTlsOptions(options);
  if (!reading.ok) return reading.problem;
  const { ca, cert, key } = reading.material;
  return createTlsCredentials(withTrustedCas(ca), key ?? null, cert ?? null);
}
