// Notifies all streams of a change in batches, so that a thousand pushes do not block the process.

export interface FanOut {
  /** Refreshes every stream once; those still waiting for an earlier change keep their place and see both
   * at once. */
  readonly start: () => void;
  stop(): void;
}

export interface Refreshable {
  refresh(): void;
}

const streamsPerTurn = 32;

export function createFanOut(listStreams: () => readonly Refreshable[]): FanOut {
  const waiting = new Set<Refreshable>();
  let turn: NodeJS.Immediate | undefined;

  function refreshSome(): void {
    turn = undefined;
    let left = streamsPerTurn;
    for (const stream of waiting) {
      waiting.delete(stream);
      stream.refresh();
      left--;
      if (left === 0) break;
    }
    if (waiting.size > 0) turn = setImmediate(refreshSome);
  }

  return {
    start() {
      for (const stream of listStreams()) waiting.add(stream);
      if (waiting.size > 0) turn ??= setImmediate(refreshSome);
    },
    stop() {
      clearImmediate(turn);
      waiting.clear();
    },
  };
}
