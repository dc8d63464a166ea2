// Tests both ends of discovery against a hostile peer: a management server that sends anything to a worker, and a
// worker that sends anything to the control plane.
import { connect as connectHttp2 } from 'node:http2';
import test from 'ava';
import { createResource } from '../../control-plane/server/snapshot/snapshot.ts';
import { runAtOnce } from '../../shared/in-slices.ts';
import { formatProblem } from '../../shared/rules/problem/problem-text.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import type { AnyMessage } from '../../shared/wire/discovery-messages.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { applyResources, type ResourcesInForce } from '../../worker/rules-source/ads-resources.ts';
import { callDiscovery, discoveryProtos, snapshotOf, startAds } from '../support/ads-fixture.ts';
import type { Random } from '../support/random.ts';
import { limitResource, startScriptedAdsServer } from '../support/scripted-ads-server.ts';
import { startXdsSource } from '../support/xds-source-run.ts';
import { damageBytes, damageJson, strangeWords } from './damage.ts';
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const { rateLimitConfig } = loadProtos();
const { aggregated, rateLimitConfig: dedicated } = discoveryProtos;

function toText(random: Random): string {
  const word = random.pick(['', 'a', 'b', 'k', 'shop', 'v*', ...strangeWords]);
  return word.toWellFormed();
}

function toDescriptor(random: Random, depth: number): Record<string, unknown> {
  return {
    key: toText(random),
    value: random.chance(0.5) ? toText(random) : '',
    rateLimit: random.chance(0.7)
      ? {
          unit: random.pick([0, 1, 2, 5, 8, 99]),
          requestsPerUnit: random.pick([0, 1, 2 ** 32 - 1]),
          unlimited: random.chance(0.1),
          name: toText(random),
          replaces: random.chance(0.2) ? [{ name: toText(random) }] : [],
        }
      : undefined,
    descriptors:
      depth > 0 && random.chance(0.5)
        ? Array.from({ length: random.below(3) }, () => toDescriptor(random, depth - 1))
        : [],
    shadowMode: random.chance(0.2),
    metadata: random.chance(0.3)
      ? {
          fields: {
            [toText(random)]: { stringValue: toText(random) },
            'ratelane.fields': random.pick([
              { boolValue: true },
              { structValue: { fields: { share_threshold: { numberValue: 0.5 } } } },
            ]),
          },
        }
      : undefined,
  };
}

function toAny(random: Random): AnyMessage {
  const config = {
    name: toText(random),
    domain: toText(random),
    descriptors: Array.from({ length: random.below(4) }, () => toDescriptor(random, 2)),
  };
  const bytes = rateLimitConfig.serialize(
    (random.chance(0.3) ? withoutStrangers(damageJson(random, config)) : config) as never,
  );
  return {
    type_url: random.chance(0.95) ? rateLimitConfigTypeUrl : random.pick(strangeWords),
    value: random.chance(0.3) ? damageBytes(random, bytes) : bytes,
  };
}

/** The reader need not reject what the library would refuse to write. */
function withoutStrangers(config: unknown): unknown {
  try {
    rateLimitConfig.serialize(config as never);
    return config;
  } catch {
    return {};
  }
}

test.serial('any resources are in force, or refused by their names', async (t) => {
  let inForce: ResourcesInForce = new Map();
  let good = 0;
  await fuzz(t, 'discovery responses', (random) => {
    const resources = Array.from({ length: random.below(6) }, () => toAny(random));
    const options = { mergeDomains: random.chance(0.5), sanitizeMetricDots: random.chance(0.5) };
    const deps = { decode: rateLimitConfig.deserialize, builder: createRuleSetBuilder(options) };
    const intake = runAtOnce(applyResources(deps, resources, inForce));
    for (const problem of intake.problems) {
      checkNamedProblem(problem.message);
      const shown = formatProblem(problem);
      if (shown.length > 4000) throw new Error(`${shown.length} characters for one problem`);
      if (problem.file === '') throw new Error(`no name: ${shown}`);
    }
    if (intake.problems.length === 0 && intake.inForce.size > 0) good++;
    intake.ruleSet?.describe();
    // New names each time would accumulate in the test, not in the worker.
    inForce = random.chance(0.1) ? new Map() : intake.inForce;
  });
  t.log(`${good} were good`);
  t.true(good > 0);
});

test.serial('a worker outlives a management server that sends anything', async (t) => {
  const server = await startScriptedAdsServer(t);
  const run = await startXdsSource(t, { server: { url: server.url } });
  const stream = await server.stream(0);
  stream.send('first', 'n', [limitResource('good', 'd', 7)]);
  await run.becomes('d=7', 'd');
  await fuzz(t, 'responses over a stream', async (random) => {
    const current = server.streams.at(-1);
    const before = current?.requests.length ?? 0;
    const resources = Array.from({ length: random.below(4) }, () => toAny(random));
    current?.send(toText(random), toText(random), [limitResource('good', 'd', 7), ...resources]);
    // Each request is answered, possibly because a later one replaces it.
    if (random.chance(0.5)) await current?.request(before);
    if (run.limits('d') !== 'd=7') throw new Error('the good rule is no longer in force');
  });
  const last = server.streams.at(-1);
  last?.send('last', 'last', [limitResource('good', 'd', 8)]);
  await run.becomes('d=8', 'd');
  for (const line of run.log.lines) checkNamedProblem(line);
  t.log(`${run.log.lines.length} lines of log, ${server.streams.length} streams`);
});

const node = { id: 'worker', cluster: 'eu', metadata: { fields: { stage: { stringValue: 'a' } } } };
const sotwSample = {
  versionInfo: '1',
  node,
  resourceNames: ['a'],
  typeUrl: rateLimitConfigTypeUrl,
  responseNonce: '1',
  errorDetail: { code: 3, message: 'no' },
};
const deltaSample = {
  node,
  typeUrl: rateLimitConfigTypeUrl,
  resourceNamesSubscribe: ['*', 'a'],
  resourceNamesUnsubscribe: ['b'],
  initialResourceVersions: { a: '1' },
  responseNonce: '1',
  errorDetail: { code: 3, message: 'no' },
};

function toFrame(random: Random, message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  const length = random.chance(0.95) ? message.length : random.pick([0, 2 ** 32 - 1, 5_000_000]);
  prefix.writeUInt32BE(length, 1);
  if (random.chance(0.03)) prefix[0] = random.below(256);
  return Buffer.concat([prefix, message]);
}

test.serial(
  "the control plane ends a hostile worker's streams by name, and serves others",
  async (t) => {
    const contents = { a: 'x', b: 'y' };
    const ads = await startAds(t, { snapshot: snapshotOf(contents) });
    const session = connectHttp2(`http://127.0.0.1:${ads.port}`);
    session.on('error', () => {});
    t.teardown(() => session.destroy());
    let ended = 0;
    let answered = 0;
    const methods = [
      [aggregated.StreamAggregatedResources, sotwSample],
      [aggregated.DeltaAggregatedResources, deltaSample],
      [dedicated.StreamRlsConfigs, sotwSample],
    ] as const;
    await fuzz(t, 'streams of a hostile worker', async (random) => {
      const [method, sample] = random.pick(methods);
      const stream = session.request({
        ':method': 'POST',
        ':path': random.chance(0.95) ? method.path : `${method.path}/x`,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...(random.chance(0.1) && { 'grpc-timeout': random.pick(['1S', 'x', '99999999H', '0n']) }),
        ...(random.chance(0.1) && {
          authorization: random.pick(['Bearer', 'Bearer x', 'a b c', '']),
        }),
      });
      const trailers = new Promise<Record<string, unknown>>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error('the stream does not end')), 60_000);
        let found: Record<string, unknown> = {};
        stream.on('response', (headers) => {
          if ('grpc-status' in headers) found = headers;
        });
        stream.on('trailers', (headers) => {
          found = headers;
        });
        stream.on('error', () => {});
        stream.on('close', () => {
          clearTimeout(timer);
          resolve(found);
        });
      });
      stream.on('data', () => answered++);
      for (let count = 1 + random.below(4); count > 0; count--) {
        const value = random.chance(0.7) ? damageJson(random, sample) : sample;
        let bytes: Buffer;
        try {
          bytes = (method.requestSerialize as (value: never) => Buffer)(value as never);
        } catch {
          bytes = random.bytes(20);
        }
        stream.write(toFrame(random, random.chance(0.3) ? damageBytes(random, bytes) : bytes));
      }
      stream.end();
      const { 'grpc-status': status, 'grpc-message': text } = await trailers;
      if (!['0', '3', '8', '12', '13', '14', '16'].includes(String(status))) {
        throw new Error(`status ${status}: ${text}`);
      }
      if (status !== '0') {
        ended++;
        checkNamedProblem(decodeURIComponent(String(text)));
      }
      if (session.destroyed) throw new Error('the connection was ended');
    });
    for (const line of ads.log.lines) {
      checkNamedProblem(line);
      if (line.length > 3000) throw new Error(`a line of ${line.length} characters`);
    }
    t.log(
      `${ended} ended with a problem, ${answered} answers, ${ads.log.lines.length} lines of log`,
    );
    t.true(ended > 0 && answered > 0);
    const innocent = callDiscovery(t, ads.port, aggregated.StreamAggregatedResources, {
      node: { id: 'innocent' },
    });
    t.is((await innocent.next()).resources?.length, 2);
    innocent.close();
    ads.set(snapshotOf({ a: createResource('a', Buffer.of(1)).version }));
  },
);
