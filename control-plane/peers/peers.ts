// Queries the other control planes of a fleet, so that one answer covers all workers. They do not
// coordinate: each serves what its store has.
import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { errorText } from '../../shared/errors.ts';
import { unlessAborted } from '../../shared/unless-aborted.ts';
import { type AdminCall, createAdminClient } from '../admin/admin-client.ts';
import type { PeerSource } from './peer-list.ts';

/** One peer's answer, or why there is none. */
export type PeerAnswer<Content> =
  | { readonly url: string; readonly value: Content; readonly error?: undefined }
  | {
      readonly url: string;
      readonly value?: undefined;
      readonly error: string;
      /** Its last answer to a GET of the same path; undefined without any. */
      readonly last: Content | undefined;
    };

export type PeerQuestion = Omit<AdminCall, 'timeoutMs'>;

export interface Peers {
  /** Id of this process: one of a name's addresses is its own. */
  readonly id: string;
  /** Asks every peer at once, for at most two seconds, with the caller's own token. The answers match the
   * schema, in the order of the addresses, without this control plane. Never rejects. */
  ask<Schema extends TSchema>(
    question: PeerQuestion,
    schema: Schema,
    token: string | undefined,
  ): Promise<PeerAnswer<Static<Schema>>[]>;
}

/** The answer of a control plane to itself. */
export const itselfStatus = 409;
const timeoutMs = 2_000;
const maxAddresses = 32;
const noTls = { ca: undefined, cert: undefined, key: undefined };

export function createPeers(sources: readonly PeerSource[]): Peers {
  const id = randomUUID();
  /** The last answer of each address to each GET. */
  const lastAnswers = new Map<string, unknown>();

  async function askOne<Schema extends TSchema>(
    url: URL,
    { method, path, body }: PeerQuestion,
    { schema, token }: { schema: Schema; token: string | undefined },
  ): Promise<PeerAnswer<Static<Schema>> | undefined> {
    const client = createAdminClient({ url, token, tls: noTls });
    const place = `${client.url}${path.split('?', 1)[0]}`;
    const asked = `${path}${path.includes('?') ? '&' : '?'}peer=${id}`;
    const result = await client.call({ method, path: asked, body, timeoutMs });
    const fail = (error: string) => {
      const last = method === 'GET' ? lastAnswers.get(place) : undefined;
      return { url: client.url, error, last: Value.Check(schema, last) ? last : undefined };
    };
    if (!result.ok) return fail(result.message.split('\n', 1)[0] ?? '');
    const { status, value } = result.answer;
    if (status === itselfStatus) return undefined;
    if (status !== 200) return fail(`HTTP ${status}`);
    if (!Value.Check(schema, value)) return fail('what it answers is not of this version');
    if (method === 'GET') lastAnswers.set(place, value);
    return { url: client.url, value };
  }

  return {
    id,
    async ask(question, schema, token) {
      const found = await Promise.all(sources.map(findUrls));
      const urls = found.flatMap((each) => (each.ok ? each.urls : [])).slice(0, maxAddresses);
      const unknown = found.flatMap((each) =>
        each.ok ? [] : { url: each.url, error: each.error, last: undefined },
      );
      const answers = await Promise.all(
        urls.map((url) => askOne(url, question, { schema, token })),
      );
      return [...answers.filter((answer) => answer !== undefined), ...unknown];
    },
  };
}

type Addresses =
  | { readonly ok: true; readonly urls: readonly URL[] }
  | { readonly ok: false; readonly url: string; readonly error: string };

/** A name is looked up each time: pods come and go. */
async function findUrls(source: PeerSource): Promise<Addresses> {
  if (source.kind === 'url') return { ok: true, urls: [source.url] };
  const { host, port } = source;
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const addresses = await unlessAborted(lookup(host, { all: true }), signal);
    const urls = addresses.map(
      ({ address, family }) => new URL(`http://${family === 6 ? `[${address}]` : address}:${port}`),
    );
    return { ok: true, urls };
  } catch (error) {
    return { ok: false, url: `dns:${host}:${port}`, error: errorText(error) };
  }
}
