// Tests the exchange with a management server over real sockets: the requests that the server receives, and the effect
// of its responses.
import { createServer, type Socket } from 'node:net';
import { status } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { extensionsAnnouncement } from '../../../shared/rules/wire/resource-fields.ts';
import { parseResource } from '../../../worker/rules-source/parsed-resource.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { listenFor } from '../../support/listen.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { limitResource, startScriptedAdsServer, toAny } from '../../support/scripted-ads-server.ts';
import { startXdsSource, type XdsSourceRunOptions } from '../../support/xds-source-run.ts';

type Options = Omit<XdsSourceRunOptions, 'server'> & {
  readonly server?: Partial<XdsSourceRunOptions['server']>;
};

/** A server, and a worker on its first stream. */
async function setUp(t: ExecutionContext, { server: serverOptions, ...options }: Options = {}) {
  const server = await startScriptedAdsServer(t);
  const run = await startXdsSource(t, {
    ...options,
    server: { url: server.url, ...serverOptions },
  });
  const stream = await server.stream(0);
  return { server, stream, ...run };
}

const [, extensions] = extensionsAnnouncement;

test('the first request subscribes to all rules, and identifies the worker', async (t) => {
  const { stream } = await setUp(t, {
    nodeId: 'node-1',
    nodeMetadata: 'team=edge,x=a=b,ignored,ratelane.agreement=x',
  });
  const request = await stream.request(0);
  t.is(request.typeUrl, 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig');
  t.deepEqual([request.versionInfo, request.responseNonce], ['', '']);
  t.deepEqual(request.resourceNames, []);
  t.is(request.errorDetail, null);
  t.like(request.node, { id: 'node-1', cluster: '', userAgentName: '' });
  const text = (stringValue: string) => ({ stringValue, kind: 'stringValue' });
  t.deepEqual(request.node?.metadata?.fields, {
    team: text('edge'),
    'ratelane.instance': text('00000000-0000-4000-8000-000000000000'),
    x: text('a=b'),
    'ratelane.fields': text(extensions),
    'ratelane.agreement': text('0c0ffee0'),
  });
  const announced = ['value_to_metric', 'until', 'algorithm', 'rate_limits'];
  for (const field of announced) t.true(extensions.split(' ').includes(field), field);
});

test('once there are decisions, a large changed resource is parsed in the thread, and no other', async (t) => {
  const asked: string[] = [];
  const { stream, becomes } = await setUp(t, {
    parsingThread: {
      async parseResource(bytes, shown, decode, before) {
        asked.push(`${shown}, in place of ${before?.file}`);
        return parseResource(bytes, decode);
      },
      parse: () => Promise.reject(new Error('there are no files')),
      async close() {},
    },
  });
  const large = (domain: string, requestsPerUnit: number) => {
    const rateLimit = { unit: 1, requestsPerUnit };
    const more = Array.from({ length: 500 }, (_, at) => ({ key: `key-${at}`, rateLimit }));
    return toAny({ name: domain, domain, descriptors: [{ key: 'k', rateLimit }, ...more] });
  };
  const small = limitResource('small', 'small', 1);
  stream.send('1', 'a', [small, large('a', 1), large('b', 1)]);
  await becomes('a=1 b=1 small=1', 'a', 'b', 'small');
  t.deepEqual(asked, []);
  stream.send('2', 'b', [limitResource('small', 'small', 2), large('a', 1), large('b', 2)]);
  await becomes('a=1 b=2 small=2', 'a', 'b', 'small');
  t.deepEqual(asked, ['resource 3 of the response, in place of b']);
});

test('valid rules are in force when they are acknowledged', async (t) => {
  const { stream, rules, limits, metric } = await setUp(t);
  stream.send('1', 'a', [limitResource('r1', 'd1', 5), limitResource('r2', 'd2', 6)]);
  const ack = await stream.request(1);
  t.deepEqual([ack.versionInfo, ack.responseNonce, ack.errorDetail], ['1', 'a', null]);
  t.is(ack.node?.id, 'default');
  t.is(limits('d1', 'd2'), 'd1=5 d2=6');
  t.is(metric('ratelimit.xds.acks'), 1);
  t.is(metric('ratelimit.service.config_load_success'), 1);
  t.regex(rules.describe(), /2 resources of version "1" from localhost:\d+, 2 domains, 2 limits/);
  stream.send('2', 'b', [limitResource('r2', 'd2', 7)]);
  t.is((await stream.request(2)).versionInfo, '2');
  t.is(limits('d1', 'd2'), 'd2=7');
});

// Proof of migrating.md: `value_to_metric` and `share_threshold` arrive over xDS, from a control plane that
// knows them
test('fields that the public message lacks arrive', async (t) => {
  const { stream, rules } = await setUp(t);
  const fields = { share_threshold: { boolValue: true } };
  const metadata = { fields: { 'ratelane.fields': { structValue: { fields } } } };
  const rateLimit = { unit: 1, requestsPerUnit: 1 };
  const descriptors = [{ key: 'k', value: 'a*', rateLimit, metadata }];
  stream.send('1', 'a', [toAny({ name: 'r', domain: 'd', descriptors })]);
  await stream.request(1);
  const match = rules.current?.domains.get('d')?.match([{ key: 'k', value: 'ab' }]);
  t.deepEqual(match?.sharedValues, ['a*']);
  t.is(match?.limit.metadata, undefined);
});

test('a bad resource is refused with its problems; the others take effect and its previous version stays', async (t) => {
  const { stream, limits, metric, log, source, rules } = await setUp(t);
  stream.send('1', 'a', [limitResource('r1', 'd1', 1), limitResource('r2', 'd2', 1)]);
  await stream.request(1);
  log.lines.length = 0;
  stream.send('2', 'b', [limitResource('r1', 'd1', 2), limitResource('r2', 'd2')]);
  const nack = await stream.request(2);
  const problem =
    "r2: error: descriptors[0].rate_limit.unit: invalid rate limit unit 'UNKNOWN'\n    hint: allowed are second, minute, hour, day, week, month and year";
  t.deepEqual([nack.versionInfo, nack.responseNonce], ['1', 'b']);
  t.is(nack.errorDetail?.code, 3);
  t.is(nack.errorDetail?.message, problem);
  t.is(limits('d1', 'd2'), 'd1=2 d2=1');
  t.is(metric('ratelimit.xds.nacks'), 1);
  t.is(metric('ratelimit.service.config_load_error'), 1);
  const server = /localhost:\d+/.exec(source.describe())?.[0];
  t.deepEqual(
    log.lines.filter((line) => !/^(info|notice|debug) /.test(line)),
    [
      `error Error loading new configuration: ${problem.replace('error: ', '').replace(/\n.*/, '')}; could not load 1 of 2 resources of version "2" from ${server} (1 error): the rules loaded before stay in force`,
    ],
  );
  t.regex(rules.describe(), /in force: 1 of 2 resources of version "2"/);
  t.true(source.describe().includes(problem));
  t.regex(source.describe(), /last refusal: version "2" at /);
  t.regex(source.describe(), /in force from earlier versions: "r2"$/);

  stream.send('3', 'c', [limitResource('r2', 'd2', 3)]);
  t.is((await stream.request(3)).versionInfo, '3');
  t.is(limits('d1', 'd2'), 'd2=3');
  t.notRegex(source.describe(), /from earlier versions/);
});

// Proof of migrating.md: A refusal has the code INVALID_ARGUMENT, names every problem, and counts in
// `config_load_error` also when a resource cannot be read
test('resources of another type, or invalid messages, are refused and counted as a failed load', async (t) => {
  const { stream, metric } = await setUp(t);
  const { value = Buffer.alloc(0) } = limitResource('r', 'd', 1);
  stream.send('1', 'a', [{ type_url: 'type.googleapis.com/foo.Bar', value }]);
  t.regex((await stream.request(1)).errorDetail?.message ?? '', /got 'type\.googleapis\.com\/foo/);
  const { type_url = '' } = limitResource('r', 'd', 1);
  stream.send('2', 'b', [{ type_url, value: Buffer.from([0x0f]) }]);
  t.regex((await stream.request(2)).errorDetail?.message ?? '', /resource 1 .* cannot be read/);
  t.is(metric('ratelimit.service.config_load_error'), 2);
});

// Proof of migrating.md: A server that sends again what was refused is answered after a second, and the log
// has it once
test('a server that repeats a refused response neither floods the log nor is flooded', async (t) => {
  const clock = createManualClock();
  const { stream, log, metric } = await setUp(t, { clock });
  const bad = [limitResource('r1', 'd1'), limitResource('r2', 'd2')];
  stream.send('1', 'a', bad);
  await stream.request(1);
  const logged = log.lines.length;
  const idle = clock.pending;
  for (let round = 1; round <= 5; round++) {
    stream.send(`uuid-${round}`, `n${round}`, round % 2 === 0 ? bad : [...bad].reverse());
    await eventually('the answer waits', () => clock.pending > idle);
    t.is(metric('ratelimit.xds.responses'), round + 1);
    t.is(metric('ratelimit.xds.nacks'), round);
    clock.advance(1_000);
    const nack = await stream.request(round + 1);
    t.is(nack.responseNonce, `n${round}`);
    t.regex(nack.errorDetail?.message ?? '', /invalid rate limit unit/);
  }
  t.is(log.lines.length, logged);
  t.is(metric('ratelimit.service.config_load_error'), 1);
});

test('a stream that ends or fails keeps the rules, and the next one begins with the last good version', async (t) => {
  const { server, stream, limits, log, metric, source } = await setUp(t);
  stream.send('v1', 'a', [limitResource('r1', 'd1', 1)]);
  await stream.request(1);
  t.is(metric('ratelimit.xds.connected'), 1);
  stream.end();
  const second = await server.stream(1);
  const first = await second.request(0);
  t.deepEqual([first.versionInfo, first.responseNonce], ['v1', '']);
  t.is(limits('d1'), 'd1=1');
  t.true(
    log.lines.includes(
      `error Lost the management server ${server.url}: the server ended the stream; next attempt in 20ms, the rules in force stay`,
    ),
  );
  second.fail(status.PERMISSION_DENIED, 'not you');
  await (await server.stream(2)).request(0);
  t.is(limits('d1'), 'd1=1');
  t.is(metric('ratelimit.xds.reconnects'), 2);
  t.regex(source.describe(), /connected since /);
});

test('rules survive an outage of the server, whose beginning and end are logged once each', async (t) => {
  const port = await freePort();
  const first = await startScriptedAdsServer(t, { port });
  const run = await startXdsSource(t, { server: { url: `127.0.0.1:${port}` } });
  const { limits, log, metric, source } = run;
  (await first.stream(0)).send('v1', 'a', [limitResource('r1', 'd1', 1)]);
  await (await first.stream(0)).request(1);
  first.stop();
  await eventually('several attempts', () => (metric('ratelimit.xds.reconnects') ?? 0) >= 5);
  t.is(limits('d1'), 'd1=1');
  t.is(metric('ratelimit.xds.connected'), 0);
  t.regex(source.describe(), /, not connected since .*ECONNREFUSED/);
  t.is(log.lines.filter((line) => line.startsWith('error')).length, 1);
  t.regex(log.lines.find((line) => line.startsWith('error')) ?? '', /Lost the management server/);

  const second = await startScriptedAdsServer(t, { port });
  const stream = await second.stream(0);
  t.is((await stream.request(0)).versionInfo, 'v1');
  t.true(
    log.lines.some((line) => /^notice Connected to the management server .* after /.test(line)),
  );
  stream.send('2', 'b', [limitResource('r1', 'd1', 2)]);
  await stream.request(1);
  t.is(limits('d1'), 'd1=2');
});

test('a server that is absent at first is reported at once, and retried', async (t) => {
  const port = await freePort();
  const run = await startXdsSource(t, { server: { url: `127.0.0.1:${port}` } });
  await eventually('an attempt', () => /attempt failed/.test(run.source.describe()));
  t.regex(run.source.describe(), /, not connected yet, last attempt failed at .*ECONNREFUSED/);
  await eventually('a line', () => run.log.lines.some((line) => line.startsWith('error')));
  t.regex(
    run.log.lines.find((line) => line.startsWith('error')) ?? '',
    /^error Could not reach the management server 127\.0\.0\.1:\d+: UNAVAILABLE: .*ECONNREFUSED [\d.:]+; next attempt in 20ms, there are no rules yet \(check CONFIG_GRPC_XDS_SERVER_URL\)$/,
  );
  const server = await startScriptedAdsServer(t, { port });
  const stream = await server.stream(0);
  stream.send('1', 'a', [limitResource('r1', 'd1', 1)]);
  await run.becomes('d1=1', 'd1');
});

test('a server that sends no rules is reported after a while, once', async (t) => {
  const clock = createManualClock();
  const { log, server, stream } = await setUp(t, { clock, nodeId: 'stranger' });
  await stream.request(0);
  const silence = `warning The management server ${server.url} has sent nothing for node "stranger": still waiting for rules; if it does not know this node, set CONFIG_GRPC_XDS_NODE_ID to one that it knows`;
  clock.advance(4_999);
  t.false(log.lines.includes(silence));
  clock.advance(1);
  t.true(log.lines.includes(silence));
  const logged = log.lines.length;
  clock.advance(60_000);
  t.is(log.lines.length, logged);
});

test('a server that has sent rules may be silent', async (t) => {
  const clock = createManualClock();
  const { log, stream } = await setUp(t, { clock });
  stream.send('1', 'a', []);
  await stream.request(1);
  clock.advance(60_000);
  t.deepEqual(
    log.lines.filter((line) => line.includes('still waiting')),
    [],
  );
});

test('headers are sent in lower case with the stream', async (t) => {
  const headers = { Authorization: 'Bearer x', 'X-Zone': 'b', 'X-Data-Bin': 'raw' };
  const { stream } = await setUp(t, { server: { headers } });
  t.deepEqual(stream.headers.get('authorization'), ['Bearer x']);
  t.deepEqual(stream.headers.get('x-zone'), ['b']);
  t.deepEqual(stream.headers.get('x-data-bin'), [Buffer.from('raw')]);
});

test('a header that cannot be sent is named without its value', async (t) => {
  const server = await startScriptedAdsServer(t);
  const headers = { 'x-token': 'sec\nret' };
  const { log } = await startXdsSource(t, { server: { url: server.url, headers } });
  await eventually('a line', () => log.lines.some((line) => line.includes('"x-token"')));
  t.false(log.lines.some((line) => line.includes('sec')));
});

test("header values are masked in the server's messages only if they are secret", async (t) => {
  const headers = { 'x-env': 'e', 'x-team': 'quoted', 'x-token': 'no', 'x-api-key': 'open-sesame' };
  const { stream, log } = await setUp(t, { server: { headers } });
  stream.fail(16, 'quoted: no connection for open-sesame');
  await eventually('a line', () => log.lines.some((line) => line.includes('UNAUTHENTICATED')));
  t.true(log.lines.some((line) => line.includes('quoted: no connection for *****;')));
  t.true(
    log.lines.some((line) =>
      line.endsWith('(set CONFIG_GRPC_XDS_TOKEN_FILE to a file with a token that it accepts)'),
    ),
  );
});

test('by default a message may have 4 MiB', async (t) => {
  const { server, stream, becomes } = await setUp(t);
  stream.send('v1', 'a', [limitResource('r'.repeat(4_100_000), 'd1', 1)]);
  await becomes('d1=1', 'd1');
  stream.send('2', 'b', [limitResource('r'.repeat(4_200_000), 'd1', 2)]);
  t.is((await (await server.stream(1)).request(0)).versionInfo, 'v1');
});

test('closing ends the stream at once, and every wait', async (t) => {
  const clock = createManualClock();
  const { source, stream, server } = await setUp(t, { clock });
  await stream.request(0);
  await source.close();
  await source.close();
  t.is(clock.pending, 0);
  await eventually('the stream is gone', () => stream.isGone);
  t.is(server.streams.length, 1);
});

test('closing without a connection ends the attempts', async (t) => {
  const clock = createManualClock();
  const port = await freePort();
  const { source, log } = await startXdsSource(t, { server: { url: `127.0.0.1:${port}` }, clock });
  await eventually('a failed attempt', () => log.lines.some((line) => line.startsWith('error')));
  t.is(clock.pending, 1);
  await source.close();
  // gRPC's client may be loaded only then.
  await source.start(() => {});
  t.is(clock.pending, 0);
});

test('a server that accepts but stays silent is abandoned, and retried', async (t) => {
  const sockets: Socket[] = [];
  const mute = createServer((socket) => sockets.push(socket));
  const port = await listenFor(t, mute);
  const clock = createManualClock();
  const run = await startXdsSource(t, {
    server: { url: `127.0.0.1:${port}` },
    clock,
    connectRetryMs: 3_000,
  });
  await eventually('a connection', () => sockets.length === 1);
  clock.advance(10_000);
  t.regex(run.source.describe(), /last attempt failed at .*: no connection within 10s/);
  clock.advance(3_000);
  await eventually('another connection', () => sockets.length === 2);
});
