// Questions that a control plane asks the others by itself, with the token that they share, and its news for them: which
// revision it has seen. It asks for their workers (admin/merged-status.ts), and more in a rollout (rollout/open-rollout.ts).
import Type, { type Static, type TSchema } from 'typebox';
import type { ConfigStore } from '../../store/store.ts';
import { readTokenFile } from '../../token-file.ts';
import type { PeerAnswer, PeerCall, Peers, PeerWorkers } from './peers.ts';

/** As `Peers.ask`, with the token that the control planes share. Where that cannot be read nobody is asked, and one answer
 * says so. */
export type ExchangeAsk = <Schema extends TSchema>(
  call: PeerCall,
  schema: Schema,
  listWorkers?: (answer: Static<Schema>) => PeerWorkers | undefined,
) => Promise<PeerAnswer<Static<Schema>>[]>;

/** `tokenFile` is read at each question; undefined where there is none. */
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

/** Tells which revision the store has, until the result is called, so that the others look now and not when it is their
 * turn: a Git host calls the webhook of one, and a change through the admin API is made at one. One that cannot be told
 * looks by itself, and the status says that it is away. */
export function tellNews(store: Pick<ConfigStore, 'watch'>, ask: ExchangeAsk): () => void {
  return store.watch(({ id: revision }) => {
    void ask({ method: 'POST', path: '/looks', body: { revision } }, newsAnswer);
  });
}
