// Reads the header blocks of answers as far as a load generator has to: was it HTTP status 200, and which
// grpc-status.

import { createHpackDecoder } from '../../../worker/grpc/http2/hpack/decoder.ts';
import type { HeaderField } from '../../../worker/grpc/http2/hpack/header-field.ts';

/** What a block said, one bit for each. */
export const facts = { httpOk: 1, httpOther: 2, grpcOk: 4, grpcOther: 8 } as const;

export function createAnswerHeaders() {
  const decoder = createHpackDecoder({ tableBytes: 4096, maxListBytes: 65_536 });
  /** By length, the last block that left the table as it was: its bytes mean the same until the
   * table changes. */
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
    /** The last grpc-status other than 0. */
    get otherStatus() {
      return otherStatus;
    },
    /** The facts of a block; throws when it is not HPACK. */
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
  for (let index = 0; index < known.length; index++) {
    if (known[index] !== source[start + index]) return false;
  }
  return true;
}
