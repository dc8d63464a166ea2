// Tests the ADS server against clients that each stay within their limits and together would exhaust it: there is a
// limit on their total, and a subscribed worker still gets its changes.
import { connect } from 'node:net';
import { credentials } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { caCertificate, serverCertificate } from '../../contract/grpc-transport-certificates.ts';
import {
  type AdsFixtureOptions,
  callDiscovery,
  discoveryProtos,
  snapshotOf,
  startAds,
} from '../../support/ads-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { openRaw, request } from '../../support/raw-discovery.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;

/** A client's first bytes: its preface and empty SETTINGS. */
const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';

/** A server with a worker that has its configuration; `change` returns whether it gets the next one. */
async function startAttacked(t: ExecutionContext, options: AdsFixtureOptions = {}) {
  const ads = await startAds(t, { snapshot: snapshotOf({ shop: 'first' }), ...options });
  const open = () =>
    callDiscovery(
      t,
      ads.port,
      sotw,
      undefined,
      options.tls ? { credentials: credentials.createSsl(Buffer.from(caCertificate)) } : {},
    );
  const worker = open();
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
    /** A worker that connects now is served. */
    async newcomer() {
      const call = open();
      call.send({ node: { id: 'newcomer' } });
      await call.next();
    },
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

test('a request must be complete in time, whether or not its bytes keep arriving', async (t) => {
  const clock = createManualClock();
  const ads = await startAttacked(t, { clock });
  const raw = await openRaw(t, ads);
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

/** Connections that send only these bytes; `closed` returns how many of them the server has ended. */
function connectMany(t: ExecutionContext, port: number, count: number, bytes: Buffer) {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1')
      .on('error', () => {})
      .resume();
    t.teardown(() => socket.destroy());
    socket.write(bytes);
    return socket;
  });
  return { closed: () => sockets.filter(({ closed }) => closed).length };
}

for (const { what, tls, bytes } of [
  {
    what: 'that do not finish their TLS handshake',
    tls: { certificate: serverCertificate.cert, key: serverCertificate.key },
    // A handshake record whose rest never arrives.
    bytes: Buffer.from('16030100c8010000c40303', 'hex'),
  },
  {
    what: 'that do not accept the settings',
    tls: undefined,
    // HEADERS of 16,000 bytes, of which some are sent, and CONTINUATION would follow.
    bytes: Buffer.concat([
      Buffer.from(preface),
      Buffer.from([0x00, 0x3e, 0x80, 0x01, 0, 0, 0, 0, 0x01, 0x82]),
    ]),
  },
]) {
  test(`connections ${what} are closed when they take too long, and workers get through`, async (t) => {
    const clock = createManualClock();
    // The clock is not stopped until they are connected: a client without a sign of life would be closed for that.
    const limits = { maxOpening: 20, openingMs: 1_000, keepaliveMs: 3_600_000 };
    const ads = await startAttacked(t, { ...(tls && { tls }), limits, clock });
    const { closed } = connectMany(t, ads.port, 60, bytes);
    await eventually('all but the newest are gone', () => {
      clock.advance(limits.openingMs);
      return closed() === 40;
    });
    let isServed = false;
    const newcomer = ads.newcomer().then(() => {
      isServed = true;
    });
    await eventually('a newcomer is served', () => {
      clock.advance(limits.openingMs);
      return isServed;
    });
    await newcomer;
    await ads.change();
    const timedOut = ads.log.lines.filter((line) => line.includes('timeout'));
    t.deepEqual(timedOut, [], 'they were closed for others, and not because of the time');
  });
}

for (const { what, bytes } of [
  { what: 'silent connections', bytes: '' },
  { what: 'connections that have asked nothing', bytes: preface },
]) {
  test(`${what}: at the limit they are closed, and never a worker that is served`, async (t) => {
    const ads = await startAttacked(t, { limits: { maxConnections: 20 } });
    const { closed } = connectMany(t, ads.port, 60, Buffer.from(bytes));
    await eventually('there are 20', () => closed() === 41);
    await ads.newcomer();
    await ads.newcomer();
    await eventually('they made room', () => closed() === 43);
    await ads.change();
    t.is(ads.server.workers.list().length, 3);
  });
}
