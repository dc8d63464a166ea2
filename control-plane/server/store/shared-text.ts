// A small text by which control planes of one fleet agree on something: beside the rules in Git (git-shared-text.ts),
// or in an engine (control-plane/server/record/engines).

/** Of several concurrent swaps exactly one succeeds, whatever the machines and clocks; a text is written completely or
 * not at all. Each call ends by itself, and rejects with an AppError `store` when the place cannot be reached: a swap
 * may still have happened then. */
export interface SharedText {
  /** Human-readable location. */
  readonly description: string;
  /** The newest text; undefined when there is none. */
  read(): Promise<VersionedText | undefined>;
  /** Writes `text` if the newest text still has the version `before`; undefined: if nothing is stored. */
  swap(before: string | undefined, text: string): Promise<SwapResult>;
  /** Called when the text of this version cannot be read: empties the store, and stores the text under the returned
   * name. Does nothing when the newest text has another version. */
  setAside(version: string): Promise<string>;
  /** Aborts running calls. */
  close(): void;
}

export interface VersionedText {
  /** Unique for each write. */
  readonly version: string;
  readonly text: string;
}

export type SwapResult =
  | { readonly kind: 'written'; readonly version: string }
  /** Another writer has changed the text meanwhile. */
  | { readonly kind: 'stale' }
  /** The place answers, but accepts no writes from this control plane, for this reason. */
  | { readonly kind: 'denied'; readonly reason: string };

/** The most bytes; a longer text counts as damaged, and is read as an empty one. */
export const maxSharedTextBytes = 512 * 1024;
