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
  /** Writes `text` when the newest is still of the version `before`; undefined: when there is none. */
  swap(before: string | undefined, text: string): Promise<SwapResult>;
  /** The text of this version cannot be read: from now on there is none, and it can be found under the name that is
   * returned. Does nothing where another one is the newest by now. */
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
