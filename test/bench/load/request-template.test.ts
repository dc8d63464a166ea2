import test from 'ava';
import { decodeRateLimitRequest } from '../../../worker/listen/grpc/request-decoder.ts';
import { createRequestTemplate, writeDigits } from './request-template.ts';

test('each request is the template with the digits of its key', (t) => {
  const { message, digits } = createRequestTemplate('bench', ['key_b', 'key_c']);
  for (const start of digits) writeDigits(message, start, 190_234);
  t.is(message.readUInt32BE(1), message.length - 5);
  const decoded = decodeRateLimitRequest(message.subarray(5));
  t.true(decoded.ok);
  if (!decoded.ok) return;
  t.is(decoded.message.domain, 'bench');
  t.deepEqual(
    decoded.message.descriptors.map((descriptor) => descriptor.entries),
    [[{ key: 'key_b', value: 'd0-000190234' }], [{ key: 'key_c', value: 'd1-000190234' }]],
  );
});

test('digits of an earlier key leave nothing behind', (t) => {
  const target = Buffer.from('123456789');
  writeDigits(target, 0, 42);
  t.is(target.toString(), '000000042');
});
