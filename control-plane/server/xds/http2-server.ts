// The HTTP/2 server under the discovery services: node:http2's, with or without TLS.
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type ServerOptions,
} from 'node:http2';
import { handshakeLimitMs } from '../../../shared/connection-limit.ts';
import { type AdsLimits, maxHeaderBytes } from './limits.ts';

/** PEM texts. */
export interface AdsTls {
  readonly certificate: string;
  readonly key: string;
  /** Given: clients must present a certificate that one of these authorities has signed; its names
   * do not matter. */
  readonly clientAuthorities?: string;
}

export function createHttp2Server(
  limits: AdsLimits,
  tls: AdsTls | undefined,
): Http2Server | Http2SecureServer {
  const options: ServerOptions = {
    settings: {
      maxConcurrentStreams: limits.maxStreamsPerConnection,
      maxHeaderListSize: maxHeaderBytes,
      enablePush: false,
    },
    // In megabytes, and responses that wait count in full although they are shared. The memory of a connection is
    // bounded by its streams, so this bound only must not bite.
    maxSessionMemory: 1_000_000,
  };
  if (tls === undefined) return createServer(options);
  return createSecureServer({
    ...options,
    ...toTlsOptions(tls),
    minVersion: 'TLSv1.2',
    handshakeTimeout: handshakeLimitMs,
  });
}

export function toTlsOptions({ certificate, key, clientAuthorities }: AdsTls) {
  return {
    cert: certificate,
    key,
    ...(clientAuthorities === undefined
      ? {}
      : { ca: clientAuthorities, requestCert: true, rejectUnauthorized: true }),
  };
}
