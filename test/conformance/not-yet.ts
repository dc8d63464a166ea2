// The recorded cases that the worker need not pass yet, and why. To be reduced to nothing.

interface Gap {
  /** A topic, or the id of a case. */
  readonly name: string;
  readonly reason: string;
}

export const notYet: readonly Gap[] = [];
