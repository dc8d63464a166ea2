// Tells the other control planes which revision this one has seen, so that they look now and not when it is their turn:
// a Git host calls the webhook of one, and a change through the admin API is made at one.
import Type from 'typebox';
import { readTokenFile } from '../command/token.ts';
import type { ConfigStore } from '../store/store.ts';
import type { Peers } from './peers.ts';

export interface TellNewsDeps {
  readonly store: Pick<ConfigStore, 'watch'>;
  readonly peers: Peers;
  /** With the token that the control planes share; undefined where there is none. */
  readonly tokenFile: string | undefined;
}

const answer = Type.Object({ looks: Type.Boolean() });

/** Until the result is called. A peer that cannot be told looks by itself, and the status says that it is away. */
export function tellNews({ store, peers, tokenFile }: TellNewsDeps): () => void {
  async function tell(revision: string): Promise<void> {
    const token = tokenFile === undefined ? undefined : await readTokenFile(tokenFile);
    if (token?.ok === false) return;
    await peers.ask({ method: 'POST', path: '/looks', body: { revision } }, answer, token?.value);
  }
  return store.watch(({ id }) => void tell(id));
}
