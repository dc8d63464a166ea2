// TLS of gRPC clients, for whatever address they call.
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';

/**
 * As `credentials.createSsl`, which sends the host as the name of the server also where it is an IP address: RFC 6066
 * section 3 forbids that, some servers refuse it, and Node warns about it on standard error. The certificate is checked
 * for the address all the same.
 */
export function createTlsCredentials(
  ca: Buffer | null,
  key: Buffer | null,
  cert: Buffer | null,
): ChannelCredentials {
  const secure = credentials.createSsl(ca, key, cert);
  const create = secure._createSecureConnector.bind(secure);
  secure._createSecureConnector = (...target) => {
    const connector = create(...target);
    // The library has no option for it.
    const { connectionOptions } = connector as { connectionOptions?: ConnectionOptions };
    if (connectionOptions !== undefined && isIP(connectionOptions.servername ?? '') !== 0) {
      connectionOptions.servername = '';
    }
    return connector;
  };
  return secure;
}
