// What a control plane asks and tells the others by itself, with the token that they share: which revision it has seen,
// and which workers they have. A rollout asks for more (rollout/open-rollout.ts).
import Type, { type Static, type TSchema } from 'typebox';
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { listInstances, statusJson } from '../admin/status-report.ts';
import { readTokenFile } from '../command/token.ts';
import type { ConfigStore } from '../store/store.ts';
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

/** A deployment changes all workers within minutes. */
const workersPauseMs = 10_000;

/** Asks which workers the others have, at once and then again and again, until the result is called: when one is lost,
 * nobody may have asked for the status before. */
export function watchWorkers(ask: ExchangeAsk, clock: Clock): () => void {
  const watch = () => ask({ method: 'GET', path: '/status' }, statusJson, listInstances);
  void watch();
  return repeatAfter(clock, workersPauseMs, watch);
}
