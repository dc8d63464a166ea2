// Which recorded cases the worker does not have to pass yet, and why. Shrinks to nothing.

interface Gap {
  /** A topic, or the id of one case. */
  readonly name: string;
  readonly reason: string;
}

export const notYet: readonly Gap[] = [];
