// The options --ca, --cert and --key of every command that is a client.
import { readTlsFiles, type TlsReading } from '../../shared/tls.ts';

/** Paths of PEM files. */
export interface TlsOptions {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export async function readTlsOptions({ ca, cert, key }: TlsOptions): Promise<TlsReading> {
  if ((cert === undefined) !== (key === undefined)) {
    return { ok: false, problem: '--cert and --key go together' };
  }
  return readTlsFiles({ ca, cert, key });
}
