// Checks whether a connected client's certificate is still accepted: it may have expired since, or its CA may have been
// removed. TLS itself checks only at the handshake.
import { X509Certificate } from 'node:crypto';
import type { ServerHttp2Session } from 'node:http2';
import { TLSSocket } from 'node:tls';

export type Authorities = readonly X509Certificate[];

/** Parses a PEM text. */
export function parseAuthorities(pem: string): Authorities {
  const all = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return all.map((text) => new X509Certificate(text));
}

const longestChain = 10;

/** Caches its result, since verifying a signature is expensive and CAs seldom change. */
export class ClientCertificate {
  readonly #session: ServerHttp2Session;
  #expiresAtMs = Number.NEGATIVE_INFINITY;
  #checkedWith: Authorities | undefined;
  #isSigned = false;

  constructor(session: ServerHttp2Session) {
    this.#session = session;
  }

  /** Why the certificate is no longer accepted; undefined while it is. `nowMs`: wall time. */
  reasonAgainst(authorities: Authorities, nowMs: number): string | undefined {
    if (this.#checkedWith !== authorities) this.#check(authorities);
    if (!this.#isSigned) return 'no authority that is in force has signed the client certificate';
    return nowMs > this.#expiresAtMs ? 'the client certificate has expired' : undefined;
  }

  #check(authorities: Authorities): void {
    this.#checkedWith = authorities;
    this.#isSigned = false;
    this.#expiresAtMs = Number.POSITIVE_INFINITY;
    for (const certificate of chainOf(this.#session)) {
      this.#expiresAtMs = Math.min(this.#expiresAtMs, Date.parse(certificate.validTo));
      this.#isSigned = authorities.some(
        (authority) =>
          certificate.fingerprint256 === authority.fingerprint256 ||
          (certificate.checkIssued(authority) && certificate.verify(authority.publicKey)),
      );
      if (this.#isSigned) return;
    }
  }
}

/** The client's certificate, and the CA certificates that it sent. */
function* chainOf({ socket }: ServerHttp2Session): Generator<X509Certificate> {
  if (!(socket instanceof TLSSocket)) return;
  let certificate = socket.getPeerX509Certificate();
  for (let depth = 0; certificate !== undefined && depth < longestChain; depth++) {
    yield certificate;
    const { issuerCertificate } = certificate;
    if (issuerCertificate?.fingerprint256 === certificate.fingerprint256) return;
    certificate = issuerCertificate;
  }
}
