// The TLS of commands that are gRPC clients themselves. Apart from its options, since most commands need no gRPC.
import type { ChannelCredentials } from '@grpc/grpc-js';
import { createTlsCredentials } from '../../shared/grpc/client-credentials.ts';
import { withTrustedAuthorities } from '../../shared/tls.ts';
import { readTlsOptions, type TlsOptions } from './tls-options.ts';

/** A text for people, naming the option or the file, where they cannot be used. */
export async function readCredentials(options: TlsOptions): Promise<ChannelCredentials | string> {
  const reading = await readTlsOptions(options);
  if (!reading.ok) return reading.problem;
  const { ca, cert, key } = reading.material;
  return createTlsCredentials(withTrustedAuthorities(ca), key ?? null, cert ?? null);
}
