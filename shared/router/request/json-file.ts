// A file of a form that is JSON.
import { parseJson } from './json.ts';
import { decodeUtf8 } from './utf8.ts';

/** Where the schema is that of an object or a list, it stands for its value, since a page can send JSON
 * beside files only as a file. */
export class JsonFile extends File {
  readonly #bytes: Uint8Array;
  readonly #maxDepth: number;

  constructor(
    bytes: Uint8Array<ArrayBuffer>,
    name: string | undefined,
    type: string,
    maxDepth: number,
  ) {
    super([bytes], name ?? '', { type });
    this.#bytes = bytes;
    this.#maxDepth = maxDepth;
  }

  /** Throws 400. */
  parse(): unknown {
    return parseJson(decodeUtf8(this.#bytes), this.#maxDepth);
  }
}
