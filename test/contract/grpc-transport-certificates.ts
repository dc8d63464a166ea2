// Certificates only for tests, valid until 2126: a CA, certificates that it signed, and one that it did not sign. The
// keys protect nothing.
import { readFileSync } from 'node:fs';

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

const folder = new URL('../fixtures/certificates/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');
const readPair = (name: string): TestCertificate => ({
  cert: read(`${name}.pem`),
  key: read(`${name}.key`),
});

/** The CA's certificate; its key was discarded. */
export const caCertificate = read('authority.pem');
/** For localhost and 127.0.0.1. */
export const serverCertificate = readPair('server');
/** Has the names of `server` and another key; its common name is `renewed`. */
export const renewedCertificate = readPair('renewed');
/** For proxy.example. */
export const clientCertificate = readPair('client');
/** For other.example; its common name is proxy.example. */
export const misnamedCertificate = readPair('misnamed');
/** For proxy.example, signed by another CA. */
export const strangerCertificate = readPair('stranger');
/** Self-signed, so that it is a CA and can also be used as a client certificate. */
export const secondCa = readPair('second-authority');
/** Signed by the second CA, for proxy.example. */
export const secondClientCertificate = readPair('second-client');
