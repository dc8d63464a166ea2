import test from 'ava';
import { decodeRateLimitRequest } from '../listen/grpc/request-decoder.ts';
import { parseJsonRequest } from '../listen/proto-json-reader.ts';
import { createSampleRequests } from './sample-traffic.ts';

test('each sample has the same request in protobuf and in JSON', (t) => {
  for (const { message, json } of createSampleRequests()) {
    const decoded = decodeRateLimitRequest(message, 0, message.length);
    const parsed = parseJsonRequest(Buffer.from(json));
    if (!decoded.ok || !parsed.ok) return t.fail(json);
    t.deepEqual(decoded.message, parsed.request);
  }
  return t.pass();
});
