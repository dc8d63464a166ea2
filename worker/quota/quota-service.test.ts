// Tests the service with simulated Envoys (test/support/quota-envoy.ts), on a clock that is advanced by hand.
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import { grpcStatus } from '../../shared/grpc/status.ts';
import { createHit } from '../../test/support/counting.ts';
import { eventually } from '../../test/support/eventually.ts';
import {
  createQuotaWorld,
  encodeReports,
  QuotaEnvoy,
  type QuotaWorld,
  runEnvoys,
} from '../../test/support/quota-envoy.ts';
import type { SpanParent } from '../tracing/tracer.ts';

const ruleOf = (limit: string, more = '') =>
  `domain: d\ndescriptors:\n  - key: k\n    ${more}\n    rate_limit: {${limit}}\n`;
const aSecond = ruleOf('unit: second, requests_per_unit: 100');
const aMinute = ruleOf('unit: minute, requests_per_unit: 600');
const bucket = { k: 'a' };
/** Seconds between two reports. */
const interval = 5;

type Rows = Awaited<ReturnType<typeof runEnvoys>>;
const totals = (rows: Rows) => rows.map((row) => row.reduce((sum, { passed }) => sum + passed, 0));
const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0);
const passedBy = (rows: Rows, envoy: number) => rows.map((row) => row[envoy]?.passed);

function startEnvoys(world: QuotaWorld, rates: readonly number[]): QuotaEnvoy[] {
  return rates.map((perSecond) => new QuotaEnvoy(world, bucket, perSecond));
}

/** Sends reports by hand; returns what was sent for each bucket, as text. */
function openByHand(world: QuotaWorld) {
  const stream = world.open();
  const report = async (usages: readonly object[], domain = 'd') => {
    const before = stream.actions.length;
    stream.handler.message(encodeReports({ domain, bucketQuotaUsages: usages }));
    await world.turn();
    return stream.actions.slice(before).map((action) => {
      if (action.abandonAction !== undefined) return 'abandoned';
      const { tokenBucket, blanketRule } = action.quotaAssignmentAction?.rateLimitStrategy ?? {};
      if (tokenBucket === undefined) return blanketRule === 1 ? 'DENY_ALL' : 'ALLOW_ALL';
      const { maxTokens, tokensPerFill, fillInterval } = tokenBucket;
      return `${maxTokens} and ${tokensPerFill.value} in ${fillInterval.seconds} s`;
    });
  };
  return { stream, report };
}

function usage(id: Readonly<Record<string, string>>, allowed = 1, denied = 0) {
  return {
    bucketId: { bucket: id },
    timeElapsed: { seconds: 5 },
    numRequestsAllowed: allowed,
    numRequestsDenied: denied,
  };
}

// Proof of migrating.md: gRPC reflection and `RateLimitQuotaService` are served
test('a limit of 100 a second is shared by demand from the second reports on', async (t) => {
  const world = createQuotaWorld(aSecond);
  const rows = await runEnvoys([world], startEnvoys(world, [60, 60, 10]), 20);
  t.true(totals(rows).every((total) => total <= 200));
  for (const total of totals(rows.slice(interval + 2))) t.true(total >= 95 && total <= 102);
  t.true(passedBy(rows.slice(interval + 2), 2).every((passed) => passed === 10));
});

test('the assignment of an ended Envoy is free a second later, and a new one has a share at once', async (t) => {
  const world = createQuotaWorld(aSecond);
  const [first, second, third] = startEnvoys(world, [60, 60, 60]);
  if (!first || !second || !third) throw new Error('there are three');
  await runEnvoys([world], [first, second], interval + 1);
  first.cut();
  const alone = await runEnvoys([world], [second], 5);
  t.deepEqual(passedBy(alone.slice(2), 0), [60, 60, 60]);
  const both = await runEnvoys([world], [second, third], 5);
  for (const total of totals(both.slice(2))) t.true(total >= 95 && total <= 110, `${total}`);
});

test('Envoys that reconnect have shares by demand with their first reports', async (t) => {
  const world = createQuotaWorld(aSecond);
  const envoys = startEnvoys(world, [60, 60, 10]);
  await runEnvoys([world], envoys, 2 * interval);
  for (const envoy of envoys) envoy.cut();
  const rows = await runEnvoys([world], envoys, 2 * interval);
  // Their former assignments are free after the first second.
  for (const total of totals(rows.slice(1))) t.true(total >= 95 && total <= 110, `${total}`);
});

test('an unused share is given to others with the next report', async (t) => {
  const world = createQuotaWorld(aSecond);
  const [idle, busy] = startEnvoys(world, [90, 90]) as [QuotaEnvoy, QuotaEnvoy];
  await runEnvoys([world], [idle, busy], 2 * interval);
  idle.perSecond = 0;
  const rows = await runEnvoys([world], [idle, busy], 2 * interval);
  t.deepEqual(passedBy(rows.slice(-3), 1), [90, 90, 90]);
});

test('a limit per minute admits as many requests as it allows, and its counter has their number', async (t) => {
  const world = createQuotaWorld(aMinute);
  // A window begins 45 s later.
  await runEnvoys([world], [], 45);
  const rows = await runEnvoys([world], startEnvoys(world, [60, 60, 10]), 55);
  const passed = sum(totals(rows));
  t.true(passed >= 595 && passed <= 610, `${passed}`);
  const hit = createHit({ key: 'd_k_a_1795262460', hits: 0, limit: 600, windowSeconds: 60 });
  await new Promise((settle) => {
    const deadlineMs = world.clock.monotonicMs() + 1_000;
    world.store.count({ hits: [hit], mode: 'add', deadlineMs, cancelled: false, settle });
  });
  t.is(hit.after, passed);
  t.is(world.stat('service.rate_limit.d.k.within_limit'), passed);
});

test('nothing is assigned of a limit that others have used up until its window ends', async (t) => {
  const world = createQuotaWorld(aMinute);
  const { report } = openByHand(world);
  const key = 'd_k_a_1795262400';
  await new Promise((settle) =>
    world.store.count({
      hits: [createHit({ key, hits: 600, limit: 600, windowSeconds: 60 })],
      ...{ mode: 'add', deadlineMs: 1_000, cancelled: false, settle },
    }),
  );
  t.deepEqual(await report([usage(bucket)]), ['DENY_ALL']);
  const rows = await runEnvoys([world], [], 46);
  t.is(rows.length, 46);
  t.deepEqual(await openByHand(world).report([usage(bucket, 0)]), ['600 and 1 in 31536000 s']);
});

test('a bucket that no rule matches is admitted and counted as such', async (t) => {
  const world = createQuotaWorld(aSecond);
  const { report } = openByHand(world);
  t.deepEqual(await report([usage({ other: 'x' })]), ['ALLOW_ALL']);
  t.is(world.stat('service.no_match.d'), 1);
  const elsewhere = openByHand(world);
  t.deepEqual(await elsewhere.report([usage(bucket)], 'unknown'), ['ALLOW_ALL']);
  t.is(world.stat('service.rate_limit.unknown.domain_not_found'), 1);
});

test('without a limit all requests are admitted, with a limit of 0 none, and in shadow mode all, with those over it counted', async (t) => {
  const first = async (rule: string, allowed: number) => {
    const world = createQuotaWorld(rule);
    const { report } = openByHand(world);
    await report([usage(bucket, 0)]);
    world.clock.advance(1_000);
    const [action] = await report([usage(bucket, allowed)]);
    return { action, over: world.stat('service.rate_limit.d.k.over_limit') };
  };
  t.deepEqual(await first(ruleOf('unlimited: true'), 5), { action: 'ALLOW_ALL', over: 0 });
  t.is((await first(ruleOf('unit: second, requests_per_unit: 0'), 0)).action, 'DENY_ALL');
  const shadow = ruleOf('unit: minute, requests_per_unit: 3', 'shadow_mode: true');
  t.deepEqual(await first(shadow, 5), { action: 'ALLOW_ALL', over: 2 });
});

test('entries are put in the order in which rules nest, and a bucket with several orders is reported once', async (t) => {
  const rule = (keys: readonly [string, string], limit: number) =>
    `  - key: ${keys[0]}\n    descriptors:\n      - key: ${keys[1]}\n        rate_limit: {unit: minute, requests_per_unit: ${limit}}\n`;
  const world = createQuotaWorld(
    `domain: d\ndescriptors:\n${rule(['plan', 'user'], 7)}${rule(['user', 'plan'], 9)}${rule(['z', 'a'], 5)}`,
  );
  const { report } = openByHand(world);
  t.deepEqual(await report([usage({ a: '1', z: '2' }, 0)]), ['5 and 1 in 31536000 s']);
  t.deepEqual(world.log.lines, []);
  t.deepEqual(await report([usage({ user: 'u', plan: 'p' }, 0)]), ['7 and 1 in 31536000 s']);
  await report([usage({ user: 'v', plan: 'p' }, 0)]);
  t.deepEqual(world.log.lines, [
    'warning domain d: a bucket with user, plan matches several rules; d.plan.user is the first and applies',
  ]);
});

test('the tightest of several limits is assigned', async (t) => {
  const world = createQuotaWorld(
    'domain: d\ndescriptors:\n  - key: k\n    rate_limits: [{unit: second, requests_per_unit: 20}, {unit: day, requests_per_unit: 1000}]\n',
  );
  const { report } = openByHand(world);
  t.deepEqual(await report([usage(bucket, 0)]), ['10 and 200 in 10 s']);
  world.clock.advance(5_000);
  t.deepEqual(await report([usage(bucket, 900)]), ['10 and 1 in 31536000 s']);
});

test('rules that change are assigned with the next report', async (t) => {
  const world = createQuotaWorld(ruleOf('unit: minute, requests_per_unit: 5'));
  const { report } = openByHand(world);
  t.deepEqual(await report([usage(bucket, 0)]), ['5 and 1 in 31536000 s']);
  world.useRules(ruleOf('unit: minute, requests_per_unit: 8'));
  t.deepEqual(await report([usage(bucket, 0)]), ['DENY_ALL', '8 and 1 in 31536000 s']);
});

test('a limit with another unit is a different limit, even if its number and the other callers stay', async (t) => {
  const world = createQuotaWorld(ruleOf('unit: hour, requests_per_unit: 8'));
  const [one, other] = [openByHand(world), openByHand(world)];
  await one.report([usage(bucket, 0)]);
  await other.report([usage(bucket, 0)]);
  world.useRules(ruleOf('unit: second, requests_per_unit: 8'));
  const action = await one.report([usage(bucket, 0)]);
  t.is(action.at(-1), '4 and 480 in 60 s');
});

test('decisions continue while a report of many buckets is processed', async (t) => {
  const world = createQuotaWorld(aSecond);
  const stream = world.open();
  const bucketQuotaUsages = Array.from({ length: 9_000 }, (_, at) => usage({ k: `${at}` }));
  stream.handler.message(encodeReports({ domain: 'd', bucketQuotaUsages }));
  let turns = 0;
  for (; world.service.buckets < 9_000; turns++) await new Promise(setImmediate);
  t.true(turns > 3, 'not all in one turn of the event loop');
  await eventually('an assignment for each', () => stream.actions.length >= 9_000);
});

test('a caller with one bucket does not wait for those with thousands', async (t) => {
  const world = createQuotaWorld(aSecond);
  const large = [0, 1, 2].map((of) => {
    const stream = world.open();
    const usages = Array.from({ length: 1_000 }, (_, at) => usage({ k: `${of} ${at}` }));
    stream.handler.message(encodeReports({ domain: 'd', bucketQuotaUsages: usages }));
    return stream;
  });
  const small = world.open();
  small.handler.message(encodeReports({ domain: 'd', bucketQuotaUsages: [usage(bucket)] }));
  await eventually('its assignment', () => small.actions.length === 1);
  for (const { actions } of large) t.true(actions.length < 1_000, `${actions.length}`);
});

test('a bucket without a request in ten reports is abandoned', async (t) => {
  const world = createQuotaWorld(aSecond);
  const { report } = openByHand(world);
  const action: string[] = [];
  for (let at = 0; at < 11; at++) {
    world.clock.advance(5_000);
    action.push(...(await report([usage(bucket, at === 0 ? 1 : 0)])));
  }
  t.is(action.at(-1), 'abandoned');
  t.is(action.filter((each) => each === 'abandoned').length, 1);
  t.is(world.service.buckets, 0);
});

test('while the store fails, shares are kept and the rest is counted by this server alone', async (t) => {
  let isAway = false;
  const world = createQuotaWorld(aMinute, {
    store: (inner) => ({
      ...inner,
      count(request) {
        if (!isAway) return inner.count(request);
        setImmediate(() => request.settle(new AppError('store', 'it is away')));
      },
    }),
  });
  const { report } = openByHand(world);
  t.deepEqual(await report([usage(bucket, 0)]), ['600 and 1 in 31536000 s']);
  isAway = true;
  world.clock.advance(1_000);
  t.deepEqual(await report([usage(bucket, 590)]), ['10 and 1 in 31536000 s']);
  t.true(world.stat('quota.store_error') > 0);
  t.true(world.log.lines.some((line) => line.includes('it is away')));
});

test('the latest protocol definition, with a map of usages, is read like that of released versions', async (t) => {
  const world = createQuotaWorld(aSecond);
  const stream = world.open();
  const list = encodeReports({ bucketQuotaUsages: [usage(bucket)] });
  // An item of a list is tag, length and the usage; one of a map has a number and the usage inside.
  const item = list.subarray(2);
  const entry = Buffer.concat([Buffer.from([0x08, 0x07, 0x12, item.length]), item]);
  const domain = Buffer.from([0x0a, 0x01, 0x64]);
  stream.handler.message(Buffer.concat([domain, Buffer.from([0x12, entry.length]), entry]));
  await world.turn();
  t.deepEqual(stream.actions[0]?.bucketId, { bucket });
});

test('an assignment lives for three reporting intervals, however soon the first report follows its bucket', async (t) => {
  const world = createQuotaWorld(aSecond);
  const { stream, report } = openByHand(world);
  const lives: unknown[] = [];
  for (const ms of [0, 300, 7_000, 7_000]) {
    world.clock.advance(ms);
    await report([usage(bucket)]);
    lives.push(stream.actions.at(-1)?.quotaAssignmentAction?.assignmentTimeToLive.seconds);
  }
  t.deepEqual(lives, [15, 15, 21, 21]);
});

test('a report is a span with its buckets, and with the reason if it ends the stream', async (t) => {
  const spans: object[] = [];
  const root: SpanParent = {
    startSpan(_scope, name, started) {
      let attributes = { ...started };
      return {
        set: (more) => {
          attributes = { ...attributes, ...more };
        },
        end: (failure) => spans.push({ name, ...attributes, failure }),
      };
    },
  };
  const world = createQuotaWorld(aSecond, {
    tracer: {
      ...{ roots: () => root, startServerSpan: () => undefined, startClientSpan: () => undefined },
      stop: async () => {},
    },
  });
  const { stream, report } = openByHand(world);
  await report([usage(bucket), usage({ other: 'x' })]);
  await report([usage(bucket)]);
  await report([usage({})]);
  stream.handler.closed();
  const name = 'Quota Report';
  t.deepEqual(spans, [
    { name, buckets: 2, domain: 'd', new_buckets: 2, failure: undefined },
    { name, buckets: 1, domain: 'd', new_buckets: 0, failure: undefined },
    { name, buckets: 1, failure: 'a usage report names no bucket' },
  ]);
});

/** A map entry within another one, nested as deeply as fits into a message. */
function toNestedEntries(): Buffer {
  const varint = (value: number): number[] =>
    value < 0x80 ? [value] : [(value % 0x80) | 0x80, ...varint(Math.floor(value / 0x80))];
  const heads: number[][] = [];
  for (let length = 0; length < 400_000; length += heads.at(-1)?.length ?? 0)
    heads.push([0x08, 0x01, 0x12, ...varint(length)]);
  const nested = heads.reverse().flat();
  return Buffer.from([0x0a, 0x01, 0x64, 0x12, ...varint(nested.length), ...nested]);
}

test('a map entry within another one is not a usage, however deeply they are nested', async (t) => {
  const world = createQuotaWorld(aSecond);
  const stream = world.open();
  t.notThrows(() => stream.handler.message(toNestedEntries()));
  await eventually('its end', () => stream.ending !== undefined);
  t.like(stream.ending, { status: grpcStatus.invalidArgument });
});

test('nonsensical times and counts are accepted, and harm no other caller', async (t) => {
  const world = createQuotaWorld(aMinute);
  const { stream, report } = openByHand(world);
  const id = { bucketId: { bucket } };
  const strange: object[] = [
    { ...id, timeElapsed: { seconds: '9223372036854775807', nanos: -5 } },
    {
      ...id,
      numRequestsAllowed: Number.MAX_SAFE_INTEGER,
      numRequestsDenied: Number.MAX_SAFE_INTEGER,
    },
    { bucketId: { bucket: { k: '' } }, numRequestsAllowed: 1 },
    { bucketId: { bucket: { ['__proto__']: 'x', constructor: 'y' } } },
    { bucketId: { bucket: { k: '\n\0' } } },
    ...Array.from({ length: 2_000 }, () => ({
      ...id,
      numRequestsAllowed: Number.MAX_SAFE_INTEGER,
    })),
  ];
  await report(strange);
  await eventually('all buckets', () => world.service.buckets === 4);
  t.is(stream.ending, undefined);
  const other = openByHand(world);
  await other.report([usage(bucket, 0)]);
  const action = await other.report([usage({ k: 'b' }, 0)]);
  t.deepEqual(action, ['600 and 1 in 31536000 s']);
  t.is(world.stat('quota.store_error'), 0);
});

test('the stream of a silent caller ends when its assignments have expired, and others get its share', async (t) => {
  const world = createQuotaWorld(aSecond);
  const { stream, report } = openByHand(world);
  await report([usage(bucket)]);
  const silent = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      world.clock.advance(1_000);
      await world.turn();
    }
  };
  await silent(29);
  t.is(stream.ending, undefined);
  await silent(5);
  t.deepEqual(stream.ending, {
    status: grpcStatus.deadlineExceeded,
    text: 'no usage report in 30 s',
  });
  t.is(world.service.buckets, 0);
});

test('reports of many buckets count as many reports', async (t) => {
  const world = createQuotaWorld(aSecond);
  const { stream, report } = openByHand(world);
  const usages = Array.from({ length: 9_000 }, (_, at) => usage({ k: `${at}` }));
  for (let at = 0; at < 4; at++) {
    await report(usages);
    const action = 9_000 * (at + 1);
    await eventually(
      'an answer',
      () => stream.actions.length >= action || stream.ending !== undefined,
    );
  }
  t.like(stream.ending, { status: grpcStatus.resourceExhausted });
});

test('the stream of a caller that reads nothing is ended before its assignments fill the memory', async (t) => {
  const world = createQuotaWorld(aSecond);
  const silent = openByHand(world);
  await silent.report([usage(bucket)]);
  const other = openByHand(world);
  for (let at = 0; at < 12_000 && silent.stream.ending === undefined; at++) {
    if (at % 50 === 0) world.clock.advance(1);
    world.clock.advance(20);
    await other.report([usage(bucket, at % 100 < 50 ? 0 : 40)]);
  }
  t.not(silent.stream.ending, undefined);
  t.true(silent.stream.actions.length <= 10_001, `${silent.stream.actions.length}`);
});

test('an invalid usage report ends its own stream with the reason, and no other', async (t) => {
  const world = createQuotaWorld(aSecond);
  const other = openByHand(world);
  const endOf = async (messages: readonly (object | Buffer)[]) => {
    const stream = world.open();
    for (const message of messages)
      stream.handler.message(Buffer.isBuffer(message) ? message : encodeReports(message));
    await eventually('its end', () => stream.ending !== undefined);
    return stream.ending;
  };
  const withUsage = (more: object) => ({
    domain: 'd',
    bucketQuotaUsages: [{ ...usage(bucket), ...more }],
  });
  const invalid = grpcStatus.invalidArgument;
  const exhausted = grpcStatus.resourceExhausted;
  const long = { k: 'x'.repeat(5_000) };
  const many = Array.from({ length: 10_001 }, (_, at) => usage({ k: `${at}` }));
  const large = Array.from({ length: 8_500 }, (_, at) => usage({ k: `${at}`.padEnd(4_000) }));
  const hundredThousand = Array.from({ length: 100_000 }, (_, at) => usage({ k: `${at}` }));
  const flood = Array.from({ length: 250 }, () => withUsage({}));
  const changed = 'the domain of a stream cannot change: open another stream for another domain';
  const cannot = 'a usage report cannot be read:';
  const refusals: readonly (readonly [(object | Buffer)[], number, string])[] = [
    [[Buffer.from([0xff])], invalid, `${cannot} truncated number at byte 0`],
    [
      [{ bucketQuotaUsages: [usage(bucket)] }],
      invalid,
      'the first usage report of a stream needs a domain',
    ],
    [[withUsage({}), { ...withUsage({}), domain: 'other' }], invalid, changed],
    [[withUsage({ bucketId: { bucket: {} } })], invalid, 'a usage report names no bucket'],
    [
      [withUsage({ timeElapsed: { seconds: -5 } })],
      invalid,
      'the elapsed time of a usage report is negative',
    ],
    [
      [withUsage({ numRequestsAllowed: '18446744073709551615' })],
      invalid,
      'a usage report has more than 2^53 requests',
    ],
    [
      [withUsage({ bucketId: { bucket: long } })],
      exhausted,
      `${cannot} a bucket has more than 32 entries or 4096 bytes`,
    ],
    [
      [{ domain: 'd', bucketQuotaUsages: many }],
      exhausted,
      'more than 10000 buckets on one stream',
    ],
    [flood, exhausted, 'more than 100 reports a second, or 10000 buckets in them'],
    [
      [{ domain: 'd', bucketQuotaUsages: hundredThousand }],
      exhausted,
      'too many usage reports at once',
    ],
    [
      [{ domain: 'd', bucketQuotaUsages: large }],
      exhausted,
      'buckets with more than 33554432 characters on all streams',
    ],
  ];
  for (const [messages, status, text] of refusals)
    t.deepEqual(await endOf(messages), { status, text });
  t.is(world.stat('quota.refused'), 11);
  world.clock.advance(1_000);
  await world.turn();
  t.is((await other.report([usage(bucket)])).length, 1);
  await world.turn();
  t.is(world.service.characters, 2);
  t.is(world.service.buckets, 1, 'what streams had that ended is gone');
});
