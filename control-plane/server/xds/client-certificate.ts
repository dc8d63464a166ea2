// Checks whether a connected client's certificate is still accepted: it or its CA may have expired since, or the CA may
// have been removed. TLS itself checks only at the handshake.
import { X509Certificate } from 'node:crypto';
import { TLSSocket } from 'node:tls';

export type CaCertificates = readonly X509Certificate[];

/** Parses the PEM text of the CAs; undefined if clients need no certificate. */
export function toCaCertificates(
  tls: { readonly ca?: Buffer | string | undefined } | undefined,
): CaCertificates | undefined {
  const pattern = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
  const all = tls?.ca && (tls.ca.toString().match(pattern) ?? []);
  return all ? all.map((text) => new X509Certificate(text)) : undefined;
}

const longestChain = 10;

/** Caches its result, since verifying a signature is expensive and CAs seldom change. */
export class ClientCertificate {
  readonly #connection: { readonly socket: object };
  #expiresAtMs = Number.NEGATIVE_INFINITY;
  #checkedWith: CaCertificates | undefined;
  #isSigned = false;

  /** An HTTP/2 session, or a TLS socket in an object. */
  constructor(connection: { readonly socket: object }) {
    this.#connection = connection;
  }

  /** Why the certificate is no longer accepted; undefined while it is. `nowMs`: wall time. */
  reasonAgainst(caCertificates: CaCertificates, nowMs: number): string | undefined {
    if (this.#checkedWith !== caCertificates) this.#check(caCertificates);
    if (!this.#isSigned) return 'no CA in force has signed the client certificate';
    return nowMs > this.#expiresAtMs ? 'the client certificate or its CA has expired' : undefined;
  }

  #check(caCertificates: CaCertificates): void {
    this.#checkedWith = caCertificates;
    this.#isSigned = false;
    this.#expiresAtMs = Number.POSITIVE_INFINITY;
    for (const certificate of chainOf(this.#connection)) {
      this.#expiresAtMs = Math.min(this.#expiresAtMs, Date.parse(certificate.validTo));
      const signers = caCertificates.filter(
        (ca) =>
          certificate.fingerprint256 === ca.fingerprint256 ||
          (certificate.checkIssued(ca) && certificate.verify(ca.publicKey)),
      );
      if (signers.length === 0) continue;
      const lastMs = Math.max(...signers.map(({ validTo }) => Date.parse(validTo)));
      this.#expiresAtMs = Math.min(this.#expiresAtMs, lastMs);
      this.#isSigned = true;
      return;
    }
  }
}

/** The client's certificate, and the CA certificates that it sent. */
function* chainOf({ socket }: { readonly socket: object }): Generator<X509Certificate> {
  if (!(socket instanceof TLSSocket)) return;
  let certificate = socket.getPeerX509Certificate();
  for (let depth = 0; certificate !== undefined && depth < longestChain; depth++) {
    yield certificate;
    const { issuerCertificate } = certificate;
    if (issuerCertificate?.fingerprint256 === certificate.fingerprint256) return;
    certificate = issuerCertificate;
  }
}
