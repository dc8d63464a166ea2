// Reads the header blocks of answers as far as a load generator needs: whether the HTTP status is 200, and the
// grpc-status.

import { createHpackDecoder } from '../../../worker/grpc/http2/hpack/decoder.ts';
import type { HeaderField } from '../../../worker/grpc/http2/hpack/header-field.ts';

/** The content of a block, one bit per fact. */
export const facts = { httpOk: 1, httpOther: 2, grpcOk: 4, grpcOther: 8 } as const;

export function createAnswerHeaders() {
  const decoder = createHpackDecoder({ tableBytes: 4096, maxListBytes: 65_536 });
  /** By length, the last block that did not change the table: its bytes have the same meaning until the table
   * changes. */
  const known: ({ readonly bytes: Buffer; readonly facts: number } | undefined)[] = [];
  const fields: HeaderField[] = [];
  let otherStatus = '';

  const factOf = ({ name, value }: HeaderField): number => {
    if (name === ':status') return value === '200' ? facts.httpOk : facts.httpOther;
    if (name !== 'grpc-status') return 0;
    if (value === '0') return facts.grpcOk;
    otherStatus = value;
    return facts.grpcOther;
  };

  return {
    /** The last grpc-status that is not 0. */
    get otherStatus() {
      return otherStatus;
    },
    /** The facts in a block; throws when it is not valid HPACK. */
    read(source: Buffer, start: number, end: number) {
      const same = known[end - start];
      if (same !== undefined && isEqual(same.bytes, source, start)) return same.facts;
      const { generation } = decoder;
      fields.length = 0;
      decoder.decode(source, start, end, fields);
      let found = 0;
      for (const field of fields) found |= factOf(field);
      if (decoder.generation !== generation) known.length = 0;
      else if ((found & facts.grpcOther) === 0) {
        known[end - start] = { bytes: Buffer.from(source.subarray(start, end)), facts: found };
      }
      return found;
    },
  };
}

function isEqual(known: Buffer, source: Buffer, start: number): boolean {
  for (let index = 0; index < known.length; index++)
    if (known[index] !== source[start + index]) return false;
  return true;
}
