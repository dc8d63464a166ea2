// The TLS of commands that are gRPC clients themselves. Apart from its options, since most commands need no gRPC.
import type { ChannelCredentials } from '@grpc/grpc-js';
import { createTlsCredentials } from '../../shared/grpc/client-credentials.ts';
import { withTrustedAuthorities } from '../../shared/tls.ts';
import { readTlsOptions, type TlsOptions } from './tls-options.ts';

/** The reason where they cannot be used, with the option or the file. */
export async function readCredentials(options: TlsOptions): Promise<ChannelCredentials | string> {
  const reading = await readTlsOptions(options);
  if (!reading.ok) return reading.problem;
  const { ca, cert, key } = reading.material;
  return createTlsCredentials(withTrustedAuthorities(ca), key ?? null, cert ?? null);
}
