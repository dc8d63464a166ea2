// TLS with a key-value store: files are read again for each connection, so that the next one uses a renewed
// certificate.
import { isIP } from 'node:net';
import { type ConnectionOptions, createSecureContext, type SecureContext } from 'node:tls';
import { readTlsFiles, type TlsMaterial, withTrustedCas } from '../../../shared/tls.ts';
import type { ClientTlsOptions } from '../../client-tls.ts';
import type { StoreAddress } from './address.ts';

export type TlsOptions = Pick<
  ConnectionOptions,
  'secureContext' | 'servername' | 'checkServerIdentity'
>;

export interface ConnectionTls {
  /** Rejects with an Error that names the unusable file. */
  readOptions(address: StoreAddress): Promise<TlsOptions>;
}

export function createConnectionTls(options: ClientTlsOptions): ConnectionTls {
  const { files, skipHostnameVerification } = options;
  let last: { readonly material: TlsMaterial; readonly secureContext: SecureContext } | undefined;

  /** Built again only when a file has changed: parsing a host's many CAs takes time. */
  async function readContext(): Promise<SecureContext> {
    const reading = await readTlsFiles(files);
    if (!reading.ok) throw new Error(reading.problem);
    const { material } = reading;
    if (last === undefined || !isSame(last.material, material)) {
      const { ca, cert, key } = material;
      const secureContext = createSecureContext({ ca: withTrustedCas(ca), cert, key });
      last = { material, secureContext };
    }
    return last.secureContext;
  }

  return {
    async readOptions(address) {
      const secureContext = await readContext();
      const hasName = address.kind === 'tcp' && isIP(address.host) === 0;
      return {
        secureContext,
        ...(hasName && { servername: address.host }),
        ...(skipHostnameVerification && { checkServerIdentity: () => undefined }),
      };
    },
  };
}

function isSame(one: TlsMaterial, other: TlsMaterial): boolean {
  return (['ca', 'cert', 'key'] as const).every((part) => {
    const [left, right] = [one[part], other[part]];
    return left === undefined || right === undefined ? left === right : left.equals(right);
  });
}
