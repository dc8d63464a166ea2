// Reads the header blocks of one connection. Compression has state, so every block must be read here, even if it is not
// needed.
import type { GrpcMethod, GrpcMethods } from '../method.ts';
import { createHpackDecoder, type HpackDecoder } from './hpack/decoder.ts';
import type { HeaderField } from './hpack/header-field.ts';
import { headerTableBytes, maxHeaderListBytes } from './limits.ts';
import {
  areTrailers,
  isReadHeader,
  MalformedRequest,
  oversizedHead,
  type RequestHead,
  readRequestHead,
} from './request-head.ts';

export class HeaderReader {
  readonly #methods: GrpcMethods;
  readonly #decoder: HpackDecoder;
  #lastHead: RequestHead | undefined;
  /** The last block, if it left the table unchanged; its meaning stays the same until the table changes. */
  #lastBlock = Buffer.alloc(0);
  #lastMethod: GrpcMethod | undefined;
  #lastGeneration = -1;

  /** With `storesAll`, methods can read any header; otherwise only known ones are retained. */
  constructor(methods: GrpcMethods, storesAll: boolean) {
    this.#methods = methods;
    this.#decoder = createHpackDecoder({
      tableBytes: headerTableBytes,
      maxListBytes: maxHeaderListBytes,
      isRead: storesAll ? undefined : isReadHeader,
    });
  }

  /**
   * Reads the complete block in bytes[start, end); undefined for one that violates the rules of requests. Throws
   * HpackError.
   */
  readHead(bytes: Buffer, start: number, end: number): RequestHead | undefined {
    const decoder = this.#decoder;
    const { generation } = decoder;
    if (
      this.#lastHead !== undefined &&
      generation === this.#lastGeneration &&
      isSame(this.#lastBlock, bytes, start, end)
    ) {
      return this.#lastHead;
    }
    const fields: HeaderField[] = [];
    decoder.decode(bytes, start, end, fields);
    if (decoder.oversized) return oversizedHead;
    const head = this.#isAsBefore(fields)
      ? this.#lastHead
      : readUnlessMalformed(fields, decoder.listBytes);
    if (head === undefined) return undefined;
    if (head !== this.#lastHead) {
      this.#lastHead = head;
      this.#lastMethod = this.#methods.get(head.path);
    }
    const isRepeatable = decoder.generation === generation;
    if (isRepeatable) this.#lastBlock = Buffer.from(bytes.subarray(start, end));
    this.#lastGeneration = isRepeatable ? generation : -1;
    return head;
  }

  /** Whether these fields are identical to those of the last head: the same table entries, or unread ones. */
  #isAsBefore(fields: readonly HeaderField[]): boolean {
    const before = this.#lastHead;
    if (before === undefined || before.listBytes !== this.#decoder.listBytes) return false;
    if (before.fields.length !== fields.length) return false;
    for (let index = 0; index < fields.length; index++) {
      if (before.fields[index] !== fields[index]) return false;
    }
    return true;
  }

  findMethod(head: RequestHead): GrpcMethod | undefined {
    return head === this.#lastHead ? this.#lastMethod : this.#methods.get(head.path);
  }

  /** False for a block that violates the rules of trailers. Throws HpackError. */
  readTrailers(bytes: Buffer, start: number, end: number): boolean {
    const fields: HeaderField[] = [];
    this.#decoder.decode(bytes, start, end, fields);
    return areTrailers(fields);
  }
}

function readUnlessMalformed(
  fields: readonly HeaderField[],
  listBytes: number,
): RequestHead | undefined {
  try {
    return readRequestHead(fields, listBytes);
  } catch (error) {
    if (error instanceof MalformedRequest) return undefined;
    throw error;
  }
}

function isSame(block: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (block.length !== end - start) return false;
  for (let index = 0; index < block.length; index++) {
    if (block[index] !== bytes[start + index]) return false;
  }
  return true;
}
