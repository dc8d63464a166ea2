// Sends usage reports that no Envoy would: the stream ends with a status and its reason, or is answered, and others
// continue.
import test from 'ava';
import { grpcStatus } from '../../shared/grpc/status.ts';
import { createQuotaWorld, encodeReports } from '../support/quota-envoy.ts';
import { damageBytes } from './damage.ts';
import { fuzz } from './fuzz-run.ts';

const rules = `domain: d
descriptors:
  - {key: a, rate_limit: {unit: second, requests_per_unit: 100}}
  - key: b
    descriptors: [{key: c, rate_limit: {unit: minute, requests_per_unit: 5}}]
`;
const sample = encodeReports({
  domain: 'd',
  bucketQuotaUsages: [
    { bucketId: { bucket: { a: 'x' } }, timeElapsed: { seconds: 5 }, numRequestsAllowed: 3 },
    { bucketId: { bucket: { c: '1', b: '2' } }, numRequestsAllowed: 7, numRequestsDenied: 2 },
  ],
});
const other = encodeReports({
  domain: 'd',
  bucketQuotaUsages: [{ bucketId: { bucket: { a: 'other' } }, numRequestsAllowed: 1 }],
});
const refusals: readonly number[] = [grpcStatus.invalidArgument, grpcStatus.resourceExhausted];

test('any bytes are a usage report, or end only their own stream', async (t) => {
  const world = createQuotaWorld(rules);
  const healthy = world.open();
  let refused = 0;
  await fuzz(t, 'usage reports', async (random) => {
    const stream = world.open();
    for (let message = 0; message < 3; message++) {
      stream.handler.message(damageBytes(random, sample));
      world.clock.advance(700);
      await world.turn();
    }
    const { ending } = stream;
    if (ending !== undefined) {
      refused++;
      if (ending === 'ok' || !refusals.includes(ending.status) || ending.text === '') {
        throw new Error(`it ended with ${JSON.stringify(ending)}`);
      }
    }
    stream.handler.closed();
    const reported = healthy.actions.length;
    healthy.handler.message(other);
    world.clock.advance(1_100);
    await world.turn();
    if (healthy.actions.length === reported) throw new Error('another stream got no answer');
  });
  t.true(refused > 0);
  t.true(world.service.buckets <= 10, `${world.service.buckets} buckets are left`);
});
