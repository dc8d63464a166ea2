// The header blocks of one connection, from bytes to what is asked. Compression has a state, so every
// block has to come by here, wanted or not.
import type { GrpcMethod, GrpcMethods } from '../method.ts';
import { createHpackDecoder } from './hpack/decoder.ts';
import type { HeaderField } from './hpack/header-field.ts';
import { headerTableBytes, maxHeaderListBytes } from './limits.ts';
import {
  areTrailers,
  MalformedRequest,
  oversizedHead,
  type RequestHead,
  readRequestHead,
} from './request-head.ts';

export class HeaderReader {
  readonly #methods: GrpcMethods;
  readonly #decoder = createHpackDecoder({
    tableBytes: headerTableBytes,
    maxListBytes: maxHeaderListBytes,
  });
  /** The last block that left the table as it was, and what it means as long as that is so. */
  #lastBlock = Buffer.alloc(0);
  #lastHead: RequestHead | undefined;
  #lastMethod: GrpcMethod | undefined;
  #lastGeneration = -1;

  constructor(methods: GrpcMethods) {
    this.#methods = methods;
  }

  /** Of the complete block in bytes[start, end); undefined for one that breaks the rules of requests.
   * Throws HpackError. */
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
    const head = readUnlessMalformed(fields, decoder.listBytes);
    if (head !== undefined && decoder.generation === generation) {
      this.#lastBlock = Buffer.from(bytes.subarray(start, end));
      this.#lastHead = head;
      this.#lastMethod = this.#methods.get(head.path);
      this.#lastGeneration = generation;
    }
    return head;
  }

  findMethod(head: RequestHead): GrpcMethod | undefined {
    return head === this.#lastHead ? this.#lastMethod : this.#methods.get(head.path);
  }

  /** False for a block that breaks the rules of trailers. Throws HpackError. */
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
