// What a header block is a list of. What a name or a value may consist of is left to the session.

/** Both are latin1: one character for each octet, whatever the octets are. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
  /** Who reads fields may note here what this one is; 0 at first. */
  meaning: number;
}
