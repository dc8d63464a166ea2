import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import test from 'ava';
import { parseStatsdLine, startStatsdReceiver } from './statsd-receiver.ts';
import { waitUntil } from './wait-until.ts';

test('counters, timers and gauges are read, with their tags sorted', (t) => {
  t.deepEqual(parseStatsdLine('a.b:3|c'), { label: 'a.b|c', type: 'c', value: 3 });
  t.deepEqual(parseStatsdLine('a:b:1.5|ms'), { label: 'a:b|ms', type: 'ms', value: 1.5 });
  t.deepEqual(parseStatsdLine('a:1|c|#z:1,b:2'), { label: 'a|c|b:2,z:1', type: 'c', value: 1 });
});

test('what is not a metric line is left out', (t) => {
  for (const line of ['', 'a', 'a:1', 'a:|c', ':1|c', 'a:x|c']) {
    t.is(parseStatsdLine(line), undefined, line);
  }
});

test('lines over TCP and UDP add up, also when a line comes in two pieces', async (t) => {
  const receiver = await startStatsdReceiver();
  t.teardown(receiver.close);
  const tcp = connect(receiver.port, '127.0.0.1');
  await once(tcp, 'connect');
  tcp.setNoDelay(true);
  tcp.write('hits:1|c\nhi');
  t.true(await waitUntil(() => receiver.totals.get('hits|c') === 1, 60_000));
  tcp.end('ts:2|c\ntime:9|ms\n');
  const udp = createSocket('udp4');
  udp.send('hits:4|c\ntime:7|ms', receiver.port, '127.0.0.1');
  t.true(await waitUntil(() => receiver.totals.get('hits|c') === 7, 60_000));
  t.true(await waitUntil(() => receiver.totals.get('time|ms') === 2, 60_000));
  udp.close();
});
