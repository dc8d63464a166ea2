// TLS credentials of gRPC clients, for host names and IP addresses.
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';

/**
 * Like `credentials.createSsl`, but sends no server name where the host is an IP address: RFC 6066 section 3 forbids
 * it, some servers refuse it, and Node warns about it on standard error. The certificate is still checked against the
 * address.
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
