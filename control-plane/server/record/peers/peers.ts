// Queries the other control planes of a fleet, so that one answer covers all workers. Control planes do not coordinate:
// each one serves what its store has.
import { randomUUID } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import { lookup as lookUp } from 'node:dns/promises';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { errorText } from '../../../../shared/errors.ts';
import { type TlsFiles, type TlsMaterial, withTrustedCas } from '../../../../shared/tls.ts';
import { unlessAborted } from '../../../../shared/unless-aborted.ts';
import { type AdminCall, createAdminClient } from '../../admin-client.ts';
import type { ComparedClocks } from '../../compared-clocks.ts';
import type { PeerSource } from './peer-list.ts';

/** One peer's answer, or why it gave none. */
export type PeerAnswer<Content> =
  | { readonly url: string; readonly value: Content; readonly error?: undefined }
  | {
      readonly url: string;
      readonly value?: undefined;
      readonly error: string;
      /** The workers in its last answer; undefined if they are not known. */
      readonly last: PeerWorkers | undefined;
    };

/** The instance of each worker; null for a worker without one. */
export type PeerWorkers = readonly (string | null)[];

export type PeerCall = Pick<AdminCall, 'method' | 'path' | 'body' | 'timeoutMs'>;

export interface Peers {
  /** The id of this process: one of a name's addresses may be its own. */
  readonly id: string;
  /** Asks all peers at once with the caller's token, for at most two seconds or the time limit of the call. The answers
   * match the schema, in the order of the addresses, without this control plane. `listWorkers`: lists the workers in an
   * answer, to be remembered while the peer does not answer; undefined retains the previous list. Never rejects. */
  ask<Schema extends TSchema>(
    call: PeerCall,
    schema: Schema,
    token: string | undefined,
    listWorkers?: (answer: Static<Schema>) => PeerWorkers | undefined,
  ): Promise<PeerAnswer<Static<Schema>>[]>;
  /** Replaces the TLS material for all later questions; see `PeersSettings`. */
  replaceTls(material: TlsMaterial): void;
}

export interface PeersSettings {
  readonly sources: readonly PeerSource[];
  /** The protocol for the addresses of names. */
  readonly dnsProtocol: 'http:' | 'https:';
  /** The CAs of peers' certificates, in place of those that this system trusts, and the certificate that peers are
   * shown. Undefined if neither is configured. */
  readonly tls: TlsFiles | undefined;
}

export interface PeersDeps extends Omit<PeersSettings, 'tls'> {
  readonly clocks?: ComparedClocks | undefined;
  /** Resolves all addresses of a name. */
  readonly lookup?: (name: string) => Promise<readonly LookupAddress[]>;
}

/** The status with which a control plane answers its own question. */
export const itselfStatus = 409;
export const answerMs = 2_000;
const maxAddresses = 32;
/** Enough for tens of thousands of workers; more would be a burden if all peers send it. */
const maxAnswerBytes = 32 * 1024 * 1024;

interface PeerAddress {
  readonly url: URL;
  /** The name that the peer's certificate must be issued for, if it is not the URL's host. */
  readonly serverName: string | undefined;
  /** The workers in its last answer, together with those of the source's other addresses. */
  readonly lastWorkers: Map<string, PeerWorkers>;
}

type Addresses =
  | { readonly ok: true; readonly addresses: readonly PeerAddress[] }
  | { readonly ok: false; readonly url: string; readonly error: string };

export function createPeers({
  sources,
  dnsProtocol,
  lookup = lookUpAll,
  clocks,
}: PeersDeps): Peers {
  const id = randomUUID();
  const known = sources.map((source) => ({ source, lastWorkers: new Map<string, PeerWorkers>() }));
  let tls: TlsMaterial = { ca: undefined, cert: undefined, key: undefined };
  let secureContext: SecureContext | undefined;

  /** Created once for the files in use: reading this system's CAs takes some milliseconds. */
  function secure(): SecureContext {
    if (secureContext !== undefined) return secureContext;
    const { ca = withTrustedCas(undefined), cert, key } = tls;
    secureContext = createSecureContext({ ca, cert, key });
    return secureContext;
  }

  /** Names are resolved each time: pods come and go. */
  async function findAddresses({
    source,
    lastWorkers,
  }: (typeof known)[number]): Promise<Addresses> {
    if (source.kind === 'url') {
      return { ok: true, addresses: [{ url: source.url, serverName: undefined, lastWorkers }] };
    }
    const { host, port } = source;
    // A certificate lists addresses as such, and names without the trailing dot.
    const serverName = isIP(host) === 0 ? host.replace(/\.$/, '') : undefined;
    try {
      const found = await unlessAborted(lookup(host), AbortSignal.timeout(answerMs));
      const addresses = found.map(({ address, family }) => {
        const url = new URL(`${dnsProtocol}//${family === 6 ? `[${address}]` : address}:${port}`);
        return { url, serverName, lastWorkers };
      });
      const hrefs = new Set(addresses.map(({ url }) => url.href));
      for (const href of lastWorkers.keys()) if (!hrefs.has(href)) lastWorkers.delete(href);
      return { ok: true, addresses };
    } catch (error) {
      return { ok: false, url: `dns:${host}:${port}`, error: errorText(error) };
    }
  }

  return {
    id,
    async ask({ method, path, body, timeoutMs = answerMs }, schema, token, listWorkers) {
      const askOne = async ({ url, serverName, lastWorkers }: PeerAddress) => {
        const client = createAdminClient({
          url,
          token,
          secureContext: url.protocol === 'https:' ? secure() : undefined,
          serverName,
        });
        const asked = `${path}${path.includes('?') ? '&' : '?'}peer=${id}`;
        const compare = clocks?.start();
        const result = await client.call({ method, path: asked, body, timeoutMs, maxAnswerBytes });
        const last = lastWorkers.get(url.href);
        const fail = (error: string) => ({ url: client.url, error, last });
        if (!result.ok) return fail(result.message.split('\n', 1)[0] ?? '');
        const { status, value } = result.answer;
        compare?.(client.url, result.answer.date);
        if (status === itselfStatus) return undefined;
        if (status !== 200) return fail(`HTTP ${status}`);
        if (!Value.Check(schema, value)) return fail('its answer is from another version');
        const listed = listWorkers?.(value);
        if (listed !== undefined) lastWorkers.set(url.href, listed);
        return { url: client.url, value };
      };
      const found = await Promise.all(known.map(findAddresses));
      const addresses = found.flatMap((each) => (each.ok ? each.addresses : []));
      const unknown = found.flatMap((each) =>
        each.ok ? [] : { url: each.url, error: each.error, last: undefined },
      );
      const answers = await Promise.all(addresses.slice(0, maxAddresses).map(askOne));
      return [...answers.filter((answer) => answer !== undefined), ...unknown];
    },
    replaceTls(material) {
      tls = material;
      secureContext = undefined;
    },
  };
}

function lookUpAll(name: string): Promise<readonly LookupAddress[]> {
  return lookUp(name, { all: true });
}
