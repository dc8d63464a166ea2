// A field of a header block. The session checks names and values.

/** Both are latin1: one character for each octet. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
  /** Readers may cache the field's classification here; initially 0. */
  meaning: number;
}
