// Several worker processes on one Redis decide as one: what they admit together is what one counter
// allows, and what they write is what the reference would have written.
import test from 'ava';
import { startRedisServer } from '../support/redis-server.ts';
import { startOfWindow } from '../support/window-start.ts';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts';

const limit = 100;
const rules = `domain: fleet
descriptors:
  - key: plain
    rate_limit: {unit: day, requests_per_unit: ${limit}}
  - key: mixed
    rate_limit: {unit: day, requests_per_unit: ${limit}}
`;
const daySeconds = 86_400;
/** What all requests may need. */
const stretchMs = 30_000;

interface Question {
  readonly key: string;
  readonly hits: number;
  readonly refund: boolean;
}

async function ask(worker: WorkerProcess, { key, hits, refund }: Question): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
    method: 'POST',
    body: JSON.stringify({
      domain: 'fleet',
      descriptors: [
        { entries: [{ key, value: 'v' }], hitsAddend: String(hits), isNegativeHits: refund },
      ],
    }),
  });
  await answer.body?.cancel();
  if (answer.status !== 200 && answer.status !== 429) throw new Error(`status ${answer.status}`);
  return answer.status === 200;
}

test('two workers and a client of the reference share one counter', async (t) => {
  const redis = await startRedisServer(t);
  const options = { env: { KVSTORE_URL: redis.url }, rules: { 'fleet.yaml': rules } };
  const workers = await Promise.all([
    startWorkerProcess(t, options),
    startWorkerProcess(t, options),
  ]);
  const start = await startOfWindow('day', stretchMs);

  const askOne = (index: number, question: Question) =>
    ask(workers[index % 2] as WorkerProcess, question);
  const plain = await Promise.all(
    Array.from({ length: 300 }, (_, index) =>
      askOne(index, { key: 'plain', hits: 1, refund: false }),
    ),
  );
  t.is(plain.filter(Boolean).length, limit, 'exactly the limit passes');
  t.is(await redis.command('GET', `fleet_plain_v_${start}`), '300');

  // A model: hits add, and refunds subtract, all of them from a counter that never gets near 0.
  const mixedKey = `fleet_mixed_v_${start}`;
  await redis.command('INCRBY', mixedKey, 60);
  await redis.command('EXPIRE', mixedKey, daySeconds);
  let expected = 60;
  let refunded = 0;
  const questions = Array.from({ length: 280 }, (_, index): Question => {
    const refund = index % 14 === 13;
    const hits = 1 + (index % 3);
    expected += refund ? -hits : hits;
    if (refund) refunded += hits;
    return { key: 'mixed', hits, refund };
  });
  let referenceHits = 0;
  const mixed = await Promise.all([
    ...questions.map((question, index) => askOne(index, question)),
    ...Array.from({ length: 20 }, async (_, index) => {
      const hits = 1 + (index % 3);
      referenceHits += hits;
      const after = Number(await redis.command('INCRBY', mixedKey, hits));
      await redis.command('EXPIRE', mixedKey, daySeconds);
      return after <= limit;
    }),
  ]);
  t.is(Number(await redis.command('GET', mixedKey)), expected + referenceHits);
  t.is(questions.filter(({ refund }) => refund).length, 20);
  t.true(
    questions.every(({ refund }, index) => !refund || mixed[index] === true),
    'every refund is OK',
  );
  const admitted = questions.reduce(
    (sum, { hits, refund }, index) => (mixed[index] && !refund ? sum + hits : sum),
    0,
  );
  t.true(admitted <= limit - 60 + refunded, `${admitted} hits were admitted`);
  const lifetime = Number(await redis.command('TTL', mixedKey));
  t.true(lifetime > 0 && lifetime <= daySeconds + 300, `expires in ${lifetime} s`);
});
