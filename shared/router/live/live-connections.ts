// The connections that stay open, events and sockets: bounded in number, and ended with the application.
import { HttpError, TooManyConnections } from '../errors.ts';

export type LiveConnections = ReturnType<typeof createLiveConnections>;

export function createLiveConnections(max: number) {
  const ends = new Set<() => void>();
  let isOver = false;
  return {
    /** Returns what its owner calls when it has ended. Throws 503 where there are too many, or all were ended. */
    enter(end: () => void): () => void {
      if (isOver) {
        const cause = new Error('the application ends');
        throw new HttpError(503, { cause, headers: { 'retry-after': '1' } });
      }
      if (ends.size >= max) throw new TooManyConnections();
      // Two connections may share a function.
      const entry = () => end();
      ends.add(entry);
      return () => void ends.delete(entry);
    },
    /** Ends all, and lets no other in. */
    endAll(): void {
      isOver = true;
      for (const end of [...ends]) end();
    },
  };
}
