// Checks repeatedly whether open calls still have the right to be open: a call outlives its right by no more than some
// seconds. The worker keeps the rules that it has; it receives nothing more, and its figures no longer count. TLS itself
// checks a client's certificate only at the handshake; here it is checked again.
import { X509Certificate } from 'node:crypto';
import { TLSSocket } from 'node:tls';
import { type Clock, repeatAfter } from '../../../shared/clock.ts';

/** Why a call no longer has the right to be open, for the client and the log; undefined while it has. */
export type ReasonAgainst = () => string | undefined;

export interface OpenRightsDeps<Call> {
  readonly clock: Clock;
  readonly onLost: (call: Call, reason: string) => void;
}

/** In addition to the two seconds after which a token file is read again. */
export const rightsMs = 10_000;
const callsPerTurn = 100;

export class OpenRights<Call> {
  readonly #deps: OpenRightsDeps<Call>;
  readonly #open = new Map<Call, ReasonAgainst>();
  /** Undefined while no call is open: then there is nothing to check. */
  #stopChecks: (() => void) | undefined;
  #turn: NodeJS.Immediate | undefined;

  constructor(deps: OpenRightsDeps<Call>) {
    this.#deps = deps;
  }

  add(call: Call, reasonAgainst: ReasonAgainst): void {
    this.#open.set(call, reasonAgainst);
    this.#stopChecks ??= repeatAfter(this.#deps.clock, rightsMs, () =>
      this.#check(this.#open.entries()),
    );
  }

  delete(call: Call): void {
    this.#open.delete(call);
    if (this.#open.size === 0) this.stop();
  }

  stop(): void {
    this.#stopChecks?.();
    this.#stopChecks = undefined;
    clearImmediate(this.#turn);
  }

  /** A few at a time: there may be ten thousand. */
  #check(calls: Iterator<[Call, ReasonAgainst]>): void {
    clearImmediate(this.#turn);
    for (let left = callsPerTurn; left > 0; left--) {
      const { done, value } = calls.next();
      if (done) return;
      const reason = value[1]();
      if (reason === undefined) continue;
      this.delete(value[0]);
      this.#deps.onLost(value[0], reason);
    }
    this.#turn = setImmediate(() => this.#check(calls));
  }
}

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

/** Whether the certificate of a connected client is still accepted: it or its CA may have expired since, or the CA may have
 * been removed. Caches its result, since verifying a signature is expensive and CAs seldom change. */
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
