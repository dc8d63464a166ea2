import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import { eventually } from '../../test/support/eventually.ts';
import { listenFor } from '../../test/support/listen.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { testLines } from '../../test/support/reviewed-lines.ts';
import type { Tags } from '../metrics.ts';
import { createDefaultMapping } from './default-mapping.ts';
import { parseMapping } from './mapping-file.ts';
import type { Mapping } from './metric-mapping.ts';
import { createPullEndpoint } from './pull-endpoint.ts';
import { createRegistry } from './registry.ts';

interface Options {
  readonly mapping?: Mapping;
  readonly extraTags?: Tags;
  readonly host?: string;
  readonly path?: string;
}

async function setUp(t: ExecutionContext, options: Options = {}) {
  const log = createRecordedLog();
  const clock = createManualClock();
  const registry = createRegistry({ runtimeNamesMax: 100_000, log });
  const endpoint = createPullEndpoint({
    registry,
    target: {
      host: options.host ?? '127.0.0.1',
      port: 0,
      addressSetting: 'PULLMETRICS_ADDR',
      path: options.path ?? '/metrics',
    },
    mapping: options.mapping ?? createDefaultMapping(false),
    extraTags: options.extraTags ?? {},
    log,
    clock,
  });
  const { port } = await endpoint.start();
  t.teardown(async () => {
    const stopping = endpoint.stop(1);
    clock.advance(1);
    await stopping;
  });
  const pull = async (accept = '*/*', path = '/metrics', method = 'GET') => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { accept },
      signal: AbortSignal.timeout(60_000),
    });
    const text = await answer.text();
    return { status: answer.status, type: answer.headers.get('content-type'), text };
  };
  /** The samples of one metric, with any labels. */
  const samples = async (name: string) => {
    const lines = (await pull()).text.split('\n');
    return lines.filter((line) => new RegExp(`^${name}(_\\w+)?[ {]`).test(line));
  };
  return { registry, log, clock, port, endpoint, pull, samples };
}

/** The families whose values depend on this process are tested in own-families.test.ts. */
const isOwn = (line: string) => /process_|duration|folded/.test(line);

// Proof of migrating.md: The pull endpoint shows this worker's metrics
// Proof of migrating.md: Pulled counters are live
// Proof of migrating.md: Pulled metrics have `EXTRA_TAGS` as labels
// Proof of migrating.md: OpenMetrics is there to be asked for; a counter keeps its name, its type is unknown
testLines(test, new URL('pull-endpoint.txt', import.meta.url), async (given, t) => {
  const settings = new Map<string, string>();
  const steps = given.split('; ').flatMap((step): [string, string][] => {
    const [, verb = '', rest = ''] = /^(\S+) ?(.*)$/.exec(step) ?? [];
    if (!/^(?:tags|mapping|milliseconds|path)$/.test(verb)) return [[verb, rest]];
    settings.set(verb, rest);
    return [];
  });
  const yaml = settings.get('mapping')?.replaceAll('\\n', '\n');
  const { registry, clock, pull, samples, log } = await setUp(t, {
    mapping:
      yaml === undefined
        ? createDefaultMapping(settings.has('milliseconds'))
        : (parseMapping(yaml, 'mapping.yaml').mapping ?? t.fail(yaml)),
    extraTags: JSON.parse(settings.get('tags') ?? '{}'),
    path: settings.get('path') ?? '/metrics',
  });
  const verbs: Record<string, (...words: string[]) => unknown> = {
    rule: (key = '', count, statistic, limit) =>
      registry.ruleStats(key, true, limit)[statistic as 'totalHits'].add(Number(count)),
    counter: (name = '', count) => registry.counter(name).add(Number(count)),
    gauge: (name = '', value) => registry.gauge(name).set(Number(value)),
    timer: (name = '', ms) => registry.timer(name).observe(Number(ms)),
    advance: (seconds) => clock.advance(1000 * Number(seconds)),
    'samples?': async (name = '') => (await samples(name)).join(' / ') || 'none',
    'type?': async (accept) => `${(await pull(accept)).type}`,
    'all?': async (accept) => {
      const { type, text } = await pull(accept);
      return [type, ...text.split('\n').filter((line) => !isOwn(line))].join(' / ');
    },
    'asks?': async (path, method) => {
      const { status, text } = await pull('*/*', path, method);
      return `${status}${text === '' ? ', nothing' : ''}`;
    },
    'log?': (level = '') => log.lines.filter((line) => line.startsWith(level)).join(' / '),
  };
  const results: unknown[] = [];
  for (const [verb, rest] of steps) {
    const words = rest.match(/"(?:\\.|[^"])*"|\S+/g) ?? [];
    const plain = words.map((word) => (word.startsWith('"') ? JSON.parse(word) : word));
    const result = await (verbs[verb] ?? t.fail(verb))(...plain);
    if (typeof result === 'string') results.push(result);
  }
  return results.join('; ');
});

test('extra tags are also labels of the families of this process', async (t) => {
  const { pull } = await setUp(t, { extraTags: { zone: 'b' } });
  for (const line of (await pull()).text.trim().split('\n'))
    if (!line.startsWith('#')) t.regex(line, /\{zone="b"[,}]/);
});

test('an empty host means every address', async (t) => {
  const { pull } = await setUp(t, { host: '' });
  t.is((await pull()).status, 200);
});

test('gauges are set before they are pulled', async (t) => {
  const { registry, samples } = await setUp(t);
  let pulls = 0;
  const gauge = registry.gauge('pulls');
  registry.beforeReading(() => gauge.set(++pulls));
  t.deepEqual(await samples('pulls'), ['pulls 1']);
  t.deepEqual(await samples('pulls'), ['pulls 2']);
});

// Proof of migrating.md: A pull port that cannot be opened ends the start
test('a port that cannot be opened is logged with its setting', async (t) => {
  const port = await listenFor(t, createServer());
  const log = createRecordedLog();
  const endpoint = createPullEndpoint({
    registry: createRegistry({ runtimeNamesMax: 0, log }),
    target: { host: '127.0.0.1', port, addressSetting: 'PROMETHEUS_ADDR', path: '/metrics' },
    mapping: createDefaultMapping(false),
    extraTags: {},
    log,
    clock: createManualClock(),
  });
  const error = await t.throwsAsync(endpoint.start(), { instanceOf: AppError });
  t.is(error?.code, 'cannot_start');
  t.is(
    error?.message,
    `cannot listen for metrics on 127.0.0.1:${port}: the port is in use; set PROMETHEUS_ADDR to another`,
  );
});

test('readers that do not read are bounded in number and time', async (t) => {
  t.timeout(180_000);
  const { registry, port, pull, clock } = await setUp(t);
  // Enough that the answer does not fit into the buffers of a connection.
  for (let i = 0; i < 15_000; i++) {
    registry.ruleStats(`domain.key_${'x'.repeat(600)}${i}`, true).totalHits.add(1);
  }
  const begin = async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    t.teardown(() => socket.destroy());
    socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await once(socket, 'readable', { signal: AbortSignal.timeout(60_000) });
    // The rest is left unread.
    return String(socket.read('HTTP/1.1 200'.length));
  };
  for (let count = 0; count < 8; count++) t.is(await begin(), 'HTTP/1.1 200');
  t.is(await begin(), 'HTTP/1.1 503');
  clock.advance(60_000);
  await eventually('an answer again', async () => (await pull()).status === 200, 60_000);
});
