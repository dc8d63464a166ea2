// A cluster without any reachable node at the start; the other tests are in the contract of counter stores.
import test from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { createRecordedRedisStore } from '../../../test/support/redis-store.ts';

for (const failureMode of ['error', 'allow'] as const) {
  test(`an unreachable cluster has the reason in its state: ${failureMode}`, async (t) => {
    const url = `127.0.0.1:${await freePort()}`;
    const store = createRecordedRedisStore(url, { type: 'cluster', failureMode });
    t.teardown(() => store.close(0));
    const connecting = store.connect(new AbortController().signal).catch(() => {});
    if (failureMode === 'allow') await connecting;
    await eventually('it is said', () => store.log.lines.length > 0);
    t.regex(store.state().detail, /^not connected .*; last failure at \S+: .*ECONNREFUSED/);
    t.deepEqual(store.healthChanges, failureMode === 'allow' ? [false] : []);
  });
}
