// A Redis whose user has a cloud token for a password: connections that come later use a later token.
import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { createCloudIamCredentials } from '../../worker/counters/redis/cloud-iam-token.ts';
import { createHit, startCounting } from '../support/counting.ts';
import { eventually } from '../support/eventually.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { openRedisStore } from '../support/redis-store.ts';

const options = { cacheName: 'orders', userId: 'limits', serverless: false, region: 'eu-west-1' };

test('connections authenticate with the token of their time, and are replaced in time', async (t) => {
  const redis = await startRedisServer();
  t.teardown(redis.stop);
  let wallMs = Date.parse('2026-03-04T05:06:07Z');
  const readCredentials = createCloudIamCredentials(options, {
    clock: { ...systemClock, wallMs: () => wallMs },
    readCloudCredentials: async () => ({ accessKeyId: 'AKID', secretAccessKey: 'secret' }),
  });
  const allow = async (token: string) =>
    redis.command('ACL', 'SETUSER', 'limits', 'on', 'resetpass', `>${token}`, '~*', '+@all');
  const first = (await readCredentials())?.password ?? '';
  await allow(first);
  const store = await openRedisStore(redis.url, { readCredentials, size: 1, maxAgeMs: 500 });
  t.teardown(() => store.close(0));
  const count = () => {
    const { request, result } = startCounting([createHit({ key: 'token_' })]);
    store.count(request);
    return result;
  };
  t.is((await count()).error, undefined);
  wallMs += 11 * 60_000;
  const second = (await readCredentials())?.password ?? '';
  t.not(second, first);
  await allow(second);
  const before = store.connections.total;
  await eventually('the connection is replaced', () => store.connections.total > before);
  for (let i = 0; i < 20; i++) t.is((await count()).error, undefined);
  t.is(await redis.command('ACL', 'WHOAMI'), 'default');
  t.regex(String(await redis.command('CLIENT', 'LIST')), /user=limits/);
  t.false(store.log.lines.join().includes('X-Amz-Signature'));
});

test('a connection under load is replaced without failing a decision', async (t) => {
  const redis = await startRedisServer();
  t.teardown(redis.stop);
  const store = await openRedisStore(redis.url, { size: 2, maxAgeMs: 100 });
  t.teardown(() => store.close(0));
  const errors: unknown[] = [];
  let counted = 0;
  await eventually('ten replacements', async () => {
    const { request, result } = startCounting([createHit({ key: 'aging_' })]);
    store.count(request);
    const { error } = await result;
    counted++;
    if (error !== undefined) errors.push(error);
    return store.connections.localClose >= 10;
  });
  t.deepEqual(errors, []);
  t.is(await redis.command('GET', 'aging_'), String(counted));
});
