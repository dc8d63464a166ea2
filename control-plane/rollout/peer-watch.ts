// Asks the peers about their workers, again and again, for the control plane that leads a rollout.
import type { Clock } from '../../shared/clock.ts';
import type { PeerAnswer } from '../peers/peers.ts';
import { noPeers, type PeerFacts, type RolloutFacts, toPeerFacts } from './facts.ts';

export interface PeerWatch {
  /** The last facts of the peers about the record with this content. */
  read(contentId: string): PeerFacts;
  /** Asks, unless they are being asked. */
  ask(contentId: string): void;
  /** Forgets what they said. */
  reset(): void;
}

/** Never rejects. `contentId` is that of the record that this control plane knows. */
export type AskPeers = (contentId: string) => Promise<readonly PeerAnswer<RolloutFacts>[]>;

/** `onRecord` is called with what peers know, where that is another record. Without `askPeers` there are none. */
export function createPeerWatch(
  askPeers: AskPeers | undefined,
  onRecord: (contentId: string) => void,
  clock: Pick<Clock, 'monotonicMs'>,
): PeerWatch {
  let known: { askedAtMs: number; answers: readonly PeerAnswer<RolloutFacts>[] } | undefined;
  /** The question that is under way: answers to those of before count no more. */
  let asking: symbol | undefined;

  return {
    read(contentId) {
      if (askPeers === undefined) return noPeers;
      if (known === undefined) {
        const unknown = 'waits for the answers of its peers';
        return { ...noPeers, unknown, askedAtMs: Number.NEGATIVE_INFINITY };
      }
      return toPeerFacts(known.answers, contentId, known.askedAtMs);
    },
    ask(contentId) {
      if (askPeers === undefined || asking !== undefined) return;
      const askedAtMs = clock.monotonicMs();
      const question = Symbol();
      asking = question;
      void askPeers(contentId).then((answers) => {
        if (asking !== question) return;
        asking = undefined;
        known = { askedAtMs, answers };
        for (const { value } of answers) {
          if (value !== undefined && value.record !== contentId) onRecord(value.record);
        }
      });
    },
    reset() {
      known = undefined;
      asking = undefined;
    },
  };
}
