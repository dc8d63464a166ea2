// Certificates for tests alone, valid until 2126: an authority, what it signed, and a stranger that it
// did not sign. The keys protect nothing.
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

/** The authority's certificate; its key was thrown away. */
export const authority = read('authority.pem');
/** For localhost and 127.0.0.1. */
export const serverCertificate = readPair('server');
/** The same names as `server`, another key; its common name is `renewed`. */
export const renewedCertificate = readPair('renewed');
/** For proxy.example. */
export const clientCertificate = readPair('client');
/** For other.example; its common name is proxy.example. */
export const misnamedCertificate = readPair('misnamed');
/** For proxy.example, by another authority. */
export const strangerCertificate = readPair('stranger');
/** Signed by itself, so that it is an authority and can be shown as a client's certificate too. */
export const secondAuthority = readPair('second-authority');
/** Of the second authority, for proxy.example. */
export const secondClientCertificate = readPair('second-client');
