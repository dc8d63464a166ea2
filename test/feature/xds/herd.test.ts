// Tests workers that connect to the ADS server at once, as after a network failure: none of them is rejected.
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import test from 'ava';
import { snapshotOf, startAds } from '../../support/ads-fixture.ts';
import { eventually } from '../../support/eventually.ts';

test('workers that connect while the process is busy are queued by the kernel', async (t) => {
  const ads = await startAds(t, { snapshot: snapshotOf({ shop: 'one' }) });
  const count = 1_000;
  // Reports how many are connected once all are, or none has been for 20 s: the kernel does not answer a connection
  // that it has no room for.
  const herd = `
    let connected = 0;
    const say = () => { console.log(connected); process.exit(); };
    let timer = setTimeout(say, 20_000);
    for (let index = 0; index < ${count}; index++) {
      require('node:net').connect(${ads.port}, '127.0.0.1', () => {
        if (++connected === ${count}) say();
        clearTimeout(timer);
        timer = setTimeout(say, 20_000);
      });
    }`;
  // Nothing is accepted here meanwhile.
  const { stdout } = spawnSync(process.execPath, ['-e', herd], { timeout: 60_000 });
  t.is(Number(stdout), count);
});

test('workers whose answers to the settings are in flight are not closed for their number', async (t) => {
  const ads = await startAds(t, { snapshot: snapshotOf({ shop: 'one' }) });
  let greeted = 0;
  let closed = 0;
  for (let index = 0; index < 2_500; index++) {
    const socket = connect(ads.port, '127.0.0.1')
      .on('error', () => {})
      .once('data', () => greeted++)
      .once('close', () => closed++)
      .resume();
    t.teardown(() => socket.destroy());
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
  }
  await eventually('all have the settings', () => greeted + closed >= 2_500);
  t.is(closed, 0);
});
