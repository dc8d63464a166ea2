// A small text in which control planes of one fleet agree on something: beside the rules in Git (git-shared-text.ts), or
// in an engine (control-plane/server/record/engines).

/**
 * Of several that swap at once, exactly one succeeds, whatever their machines and clocks; a text is there as a
 * whole or not at all. Each call ends by itself, and rejects with an AppError `store` when the place cannot be
 * reached: then a swap may have been made all the same.
 */
export interface SharedText {
  /** Human-readable: where it is. */
  readonly description: string;
  /** The newest; undefined when there is none. */
  read(): Promise<VersionedText | undefined>;
  /** Writes `text` when the newest still has the version `before`; undefined: when nothing is stored. */
  swap(before: string | undefined, text: string): Promise<SwapResult>;
  /** The text of this version cannot be read: the store is empty afterwards, and the text is stored under the name that is
   * returned. Does nothing when the newest text has another version. */
  setAside(version: string): Promise<string>;
  /** Aborts what is under way. */
  close(): void;
}

export interface VersionedText {
  /** Never the same for two writes. */
  readonly version: string;
  readonly text: string;
}

export type SwapResult =
  | { readonly kind: 'written'; readonly version: string }
  /** Another writer has changed the text meanwhile. */
  | { readonly kind: 'stale' }
  /** The place answers, and accepts no writes from this control plane: the reason. */
  | { readonly kind: 'denied'; readonly reason: string };

/** The most bytes; a longer text is damaged, and is read as an empty one. */
export const maxSharedTextBytes = 512 * 1024;
