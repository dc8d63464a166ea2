// Long-lived connections, for events and sockets: bounded in number, and ended together with the application.
import { HttpError, TooManyConnections } from '../errors.ts';

export type LiveConnections = ReturnType<typeof createLiveConnections>;

export function createLiveConnections(max: number) {
  const ends = new Set<() => void>();
  let isOver = false;
  return {
    /** Returns a function that the owner calls when the connection has ended. Throws 503 if there are too many
     * connections, or if all were ended. */
    enter(end: () => void): () => void {
      if (isOver) {
        const cause = new Error('the application ends');
        throw new HttpError(503, { cause, headers: { 'retry-after': '1' } });
      }
      if (ends.size >= max) throw new TooManyConnections();
      // Two connections can share a function.
      const entry = () => end();
      ends.add(entry);
      return () => void ends.delete(entry);
    },
    /** Ends all connections, and admits no others. */
    endAll(): void {
      isOver = true;
      for (const end of [...ends]) end();
    },
  };
}
