import test from 'ava';
import { codes, type RateLimitResponse } from '../../../worker/decision/message.ts';
import {
  type EncodedMessage,
  encodeRateLimitResponse,
} from '../../../worker/listen/grpc/response-encoder.ts';
import { readAnswer } from './answer-message.ts';

const status = {
  code: codes.overLimit,
  currentLimit: { name: 'n'.repeat(200), requestsPerUnit: 1_000_000_000, unit: 'minute' },
  limitRemaining: 999_999_999,
  secondsUntilReset: 30,
} as const;
const response: RateLimitResponse = {
  overallCode: codes.overLimit,
  statuses: [status, status, { ...status, currentLimit: undefined }],
  responseHeadersToAdd: [{ key: 'x-ratelimit-limit', value: '10' }],
  requestHeadersToAdd: [],
  dynamicMetadata: undefined,
};

function frame({ bytes, length }: EncodedMessage): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, bytes.subarray(0, length)]);
}

test('the overall code and the number of statuses are read from a whole response', (t) => {
  const bytes = frame(encodeRateLimitResponse(response));
  t.deepEqual(readAnswer(bytes, 0, bytes.length), {
    overallCode: codes.overLimit,
    statuses: 3,
  });
});

test('a part of a response is none, nor is one with something behind it', (t) => {
  const bytes = frame(encodeRateLimitResponse(response));
  for (let end = 0; end < bytes.length; end++) t.is(readAnswer(bytes, 0, end), undefined);
  const longer = Buffer.concat([bytes, Buffer.from([8])]);
  t.is(readAnswer(longer, 0, longer.length), undefined);
});

test('what is compressed, or has a code that does not exist, is refused', (t) => {
  for (const bytes of [
    [1, 0, 0, 0, 2, 8, 1],
    [0, 0, 0, 0, 2, 8, 3],
    [0, 0, 0, 0, 2, 9, 1],
  ]) {
    t.is(readAnswer(Buffer.from(bytes), 0, bytes.length), undefined);
  }
});
