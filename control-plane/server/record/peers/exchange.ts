// Requests that a control plane sends to the others by itself, with their shared token: notifications of the revision
// that it has seen, questions about their workers (admin/status.ts), and more in a rollout
// (rollout/open-rollout.ts).
import Type, { type Static, type TSchema } from 'typebox';
import type { ConfigStore } from '../../store/store.ts';
import { readTokenFile } from '../../token-file.ts';
import type { PeerAnswer, PeerCall, Peers, PeerWorkers } from './peers.ts';

/** Asks as `Peers.ask` does, with the token that the control planes share. If the token cannot be read, no peer is
 * asked, and the only answer gives the reason. */
export type ExchangeAsk = <Schema extends TSchema>(
  call: PeerCall,
  schema: Schema,
  listWorkers?: (answer: Static<Schema>) => PeerWorkers | undefined,
) => Promise<PeerAnswer<Static<Schema>>[]>;

/** `tokenFile` is read for each question; undefined if absent. */
export function createExchangeAsk(
  peers: Pick<Peers, 'ask'>,
  tokenFile: string | undefined,
): ExchangeAsk {
  return async (call, schema, listWorkers) => {
    const token = tokenFile === undefined ? undefined : await readTokenFile(tokenFile);
    if (token?.ok === false) return [{ url: 'any', error: token.message, last: undefined }];
    return peers.ask(call, schema, token?.value, listWorkers);
  };
}

const newsAnswer = Type.Object({ looks: Type.Boolean() });

/** Notifies the others of the store's revision until the result is called, so that they check at once and not at their
 * next poll: a Git host calls the webhook of only one control plane, and a change through the admin API is made at only
 * one. A control plane that cannot be notified polls by itself, and the status reports it as away. */
export function reportNews(store: Pick<ConfigStore, 'watch'>, ask: ExchangeAsk): () => void {
  return store.watch(({ id: revision }) => {
    void ask({ method: 'POST', path: '/looks', body: { revision } }, newsAnswer);
  });
}
