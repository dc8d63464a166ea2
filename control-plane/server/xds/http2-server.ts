// The HTTP/2 server below the discovery services: node:http2's, with or without TLS.
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
  /** If given, clients must present a certificate signed by one of these CAs; the names in it do not matter. */
  readonly clientCa?: string;
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
    // In megabytes; waiting responses count in full although they are shared. The number of streams limits a
    // connection's memory, so this limit only must not take effect first.
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

export function toTlsOptions({ certificate, key, clientCa }: AdsTls) {
  return {
    cert: certificate,
    key,
    ...(clientCa === undefined
      ? {}
      : { ca: clientCa, requestCert: true, rejectUnauthorized: true }),
  };
}
