// The schema of a file in a multipart body.
import Type from 'typebox';
import { parseJson } from './request/json.ts';
import { decodeUtf8 } from './request/utf8.ts';

/** A schema keyword of the router, which descriptions omit. */
export const uploadKeyword = 'x-upload';

/** A `File`: its bytes are in memory, within the body's limit. */
export function upload(): Type.TUnsafe<File> {
  return Type.Unsafe<File>({
    contentMediaType: 'application/octet-stream',
    [uploadKeyword]: true,
  });
}

export function isUpload(schema: Readonly<Record<string, unknown>>): boolean {
  return schema[uploadKeyword] === true;
}

/** A file of JSON: where the schema is that of an object or a list, it stands for its value, since a page can send JSON
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
