// Asks the other control planes which workers they have, so that these are known when one is lost: by then nobody may have
// asked for the status.
import type { Clock } from '../../shared/clock.ts';
import { listInstances, statusJson } from '../admin/status-report.ts';
import { readTokenFile } from '../command/token.ts';
import type { Peers } from './peers.ts';

export interface WatchWorkersDeps {
  readonly peers: Peers;
  /** With the token that the control planes share; undefined where there is none. */
  readonly tokenFile: string | undefined;
  readonly clock: Pick<Clock, 'after'>;
}

/** A deployment changes all workers within minutes. */
const pauseMs = 10_000;

/** At once and then again and again, until the result is called. */
export function watchWorkers({ peers, tokenFile, clock }: WatchWorkersDeps): () => void {
  let cancel: () => void = () => {};
  let isStopped = false;

  async function watch(): Promise<void> {
    const token = tokenFile === undefined ? undefined : await readTokenFile(tokenFile);
    if (token?.ok !== false) {
      const call = { method: 'GET', path: '/status' } as const;
      await peers.ask(call, statusJson, token?.value, listInstances);
    }
    if (!isStopped) cancel = clock.after(pauseMs, () => void watch());
  }

  void watch();
  return () => {
    isStopped = true;
    cancel();
  };
}
