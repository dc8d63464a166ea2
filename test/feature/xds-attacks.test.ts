// The ADS server against clients that each stay within their bounds and together would end it: what they
// hold has a total, and a worker that is subscribed gets its changes all the while.
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { callDiscovery, discoveryProtos, snapshotOf, startAds } from '../support/ads-fixture.ts';
import { eventually } from '../support/eventually.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { openOn, openRaw, request } from '../support/raw-discovery.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;

/** A server with a worker that has its configuration; `change` says whether it gets the next one. */
async function startAttacked(t: ExecutionContext, options: Parameters<typeof startAds>[0]) {
  const ads = await startAds({ snapshot: snapshotOf({ shop: 'first' }), ...options });
  t.teardown(ads.stop);
  const worker = callDiscovery(ads.port, sotw);
  t.teardown(worker.close);
  const answer = async () => {
    const { versionInfo = '', nonce = '' } = await worker.next();
    worker.send({ versionInfo, responseNonce: nonce });
    return versionInfo;
  };
  worker.send({ node: { id: 'innocent' } });
  await answer();
  let changes = 0;
  return {
    ...ads,
    async change() {
      const next = snapshotOf({ shop: `change ${changes++}` });
      ads.set(next);
      t.is(await answer(), next.version);
    },
  };
}

/** A request's first bytes, with more to come. */
function begun(bytes: number): Buffer {
  const part = Buffer.alloc(bytes);
  part.writeUInt32BE(4 * 1024 * 1024, 1);
  return part;
}

test('unfinished requests have a total: those that were begun first go, and never an idle worker', async (t) => {
  const limits = { maxUnfinishedBytes: 2_000_000 };
  const ads = await startAttacked(t, { limits });
  const { session } = await openRaw(ads);
  t.teardown(() => session.destroy());
  const attackers = Array.from({ length: 40 }, () => openOn(session));
  for (const { stream } of attackers) stream.write(Buffer.concat([request(), begun(100_000)]));
  const ended = () => attackers.filter(({ stream }) => stream.readableEnded);
  // The memory of each is between what it has sent and twice as much.
  await eventually('half of them are ended', () => ended().length >= 20);
  await ads.change();
  t.is(ended()[0], attackers[0]);
  t.is(
    await attackers[0]?.status(),
    '8 too much is held of unfinished requests, and this one was begun before all others',
  );
  await eventually('they have left', () => ads.server.workers.list().length <= 21);
  t.true(ended().length <= 30, `${ended().length} were ended`);
  await ads.change();
});

test('a request that is begun must be complete in time, with what comes of it or without', async (t) => {
  const clock = createManualClock();
  const ads = await startAttacked(t, { clock });
  const raw = await openRaw(ads);
  t.teardown(() => raw.session.destroy());
  raw.stream.write(Buffer.concat([request(), begun(10)]));
  await eventually('it is known', () => ads.server.workers.list().length === 2);
  for (let seconds = 0; seconds < 29; seconds++) {
    raw.stream.write('x');
    clock.advance(1000);
  }
  t.is(ads.server.workers.list().length, 2);
  clock.advance(1000);
  t.is(await raw.status(), '8 a request was not complete after 30 s');
  await ads.change();
});
