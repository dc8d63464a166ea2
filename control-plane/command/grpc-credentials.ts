// The TLS of commands that are gRPC clients themselves, from their options --ca, --cert and --key.
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { readTlsFiles, withTrustedAuthorities } from '../../shared/tls.ts';

/** Paths of PEM files. */
export interface TlsOptions {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** A text for people, naming the option or the file, where they cannot be used. */
export async function readCredentials({
  ca,
  cert,
  key,
}: TlsOptions): Promise<ChannelCredentials | string> {
  if ((cert === undefined) !== (key === undefined)) return '--cert and --key go together';
  const reading = await readTlsFiles({ ca, cert, key });
  if (!reading.ok) return reading.problem;
  const { material } = reading;
  const authorities = withTrustedAuthorities(material.ca);
  return credentials.createSsl(authorities, material.key ?? null, material.cert ?? null);
}
