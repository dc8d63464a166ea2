// Complete decisions over real rules and counters in process, as text: limits.txt, limiters.txt, local-cache.txt,
// client-fields.txt, metadata.txt, without-store.txt and trail.txt.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import { ask, createWorker, start } from '../../test/support/decision-worker.ts';
import { testScenarios } from '../../test/support/scenarios.ts';
import type { CountRequest } from '../counters/store.ts';
import { codes, type DescriptorStatus } from './message.ts';
import type { DecisionOutcome } from './should-rate-limit.ts';

type Options = NonNullable<Parameters<typeof createWorker>[1]>;
type Worker = ReturnType<typeof createWorker>;

const units = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'];
const statistic = /^ratelimit\.service\.(?!response_time|call\.should_rate_limit\.config)/;

/** The worker of one scenario, with its statistics and counters when they were last shown. */
interface Seen {
  readonly worker: Worker;
  readonly keys: Set<string>;
  readonly before: Map<string, number>;
  /** The counters that the store can count: all, those whose key contains this text, or none. */
  store: { counts: string | undefined };
}

function open(folder: string, words: readonly string[]): Seen {
  const options = Object.fromEntries(words.map((word) => word.split(/=(.*)/s)));
  const keys = new Set<string>();
  const store: Seen['store'] = { counts: '' };
  const parsed = Object.entries(options).map(([name, text]) => [name, JSON.parse(`${text}`)]);
  const worker = createWorker(readRules(folder), {
    ...(Object.fromEntries(parsed) as Options),
    store: (inner) => ({
      ...inner,
      count(request) {
        for (const { key } of request.hits) keys.add(key);
        const hits = request.hits.filter(({ key }) => store.counts && key.includes(store.counts));
        if (store.counts === '') return inner.count(request);
        const error = new AppError('store', 'the store is away');
        const settle: CountRequest['settle'] = (failure) =>
          request.settle(hits.length < request.hits.length ? error : failure);
        if (hits.length === 0) setImmediate(settle, error);
        else inner.count({ ...request, hits, settle });
        return undefined;
      },
    }),
  });
  return { worker, keys, before: new Map(), store };
}

function readRules(folder: string): string {
  return readFileSync(join(folder, 'rules.yaml'), 'utf8');
}

/** Parses `KEY=VALUE[,KEY=VALUE]`, then `*HITS`, `*-HITS` for a refund, and `!NUMBER/UNIT` for a limit of its own. */
function toDescriptor(word: string) {
  const [, of = '', hits, requestsPerUnit, unit = ''] =
    /^(.*?)(?:\*(-?\d+))?(?:!(\d+)\/(\w+))?$/.exec(word) ?? [];
  const isOwn = requestsPerUnit !== undefined;
  const number = units.includes(unit) ? units.indexOf(unit) : Number(unit);
  const count = hits === undefined ? undefined : BigInt(hits.replace('-', ''));
  return {
    of,
    hitsAddend: count !== undefined && count <= Number.MAX_SAFE_INTEGER ? Number(count) : count,
    isNegativeHits: hits?.startsWith('-') ?? false,
    limit: isOwn ? { requestsPerUnit: Number(requestsPerUnit), unit: number } : undefined,
  };
}

function toStatusLine({ code, currentLimit, ...status }: DescriptorStatus): string {
  const { limitRemaining, secondsUntilReset } = status;
  const word = code === codes.ok ? 'OK' : 'OVER';
  if (currentLimit === undefined) return `  ${word}, ${limitRemaining} left`;
  const { requestsPerUnit, unit, name } = currentLimit;
  const named = name === '' ? '' : `, named ${name}`;
  return `  ${word}, ${limitRemaining} left of ${requestsPerUnit} per ${unit}${named}, ${secondsUntilReset} s`;
}

function toOutcomeLines(outcome: DecisionOutcome): string[] {
  if (!outcome.ok) return [`${outcome.error.code}: ${outcome.error.message}`];
  const { overallCode, statuses, responseHeadersToAdd, requestHeadersToAdd, dynamicMetadata } =
    outcome.response;
  const headers = [...responseHeadersToAdd, ...requestHeadersToAdd];
  return [
    overallCode === codes.ok ? 'OK' : 'OVER',
    ...statuses.map(toStatusLine),
    ...headers.map(({ key, value }) => `  header ${key}: ${value}`),
    ...(dynamicMetadata ? [`  metadata ${JSON.stringify(dynamicMetadata)}`] : []),
  ];
}

/** Counters and statistics that have changed since they were last shown. */
function findChanges({ worker, keys, before }: Seen): string[] {
  const now = new Map<string, number>();
  for (const key of keys) now.set(`counter ${key}`, Number(worker.memory.read(key) ?? Number.NaN));
  for (const [name, value] of worker.statistics())
    if (statistic.test(name)) now.set(name.slice('ratelimit.service.'.length), value);
  const changes: string[] = [];
  for (const [name, value] of now) {
    const last = before.get(name) ?? 0;
    if (value !== last && !Number.isNaN(value)) {
      const isCounter = name.startsWith('counter ');
      changes.push(isCounter ? `  ${name} is ${value}` : `  ${name} + ${value - last}`);
    }
    before.set(name, Number.isNaN(value) ? 0 : value);
  }
  return changes;
}

const workers = new Map<string, Seen>();

async function run(words: readonly string[], folder: string): Promise<string> {
  const [command, ...rest] = words;
  if (command === 'worker' || !workers.has(folder))
    workers.set(folder, open(folder, command === 'worker' ? rest : []));
  const seen = workers.get(folder) as Seen;
  if (command === 'worker') return '';
  if (command === 'advance') {
    seen.worker.clock.advance(Number(rest[0]) * 1_000);
    return '';
  }
  if (command === 'set-clock') {
    seen.worker.clock.setWall(seen.worker.clock.wallMs() + Number(rest[0]) * 1_000);
    return '';
  }
  if (command === 'store') {
    seen.store.counts = rest[0] === 'back' ? '' : rest[2];
    if (rest[0] === 'back') seen.worker.failurePolicy?.storeIsBack();
    return '';
  }
  if (command === 'reload') {
    seen.worker.useRules(readRules(folder));
    return '';
  }
  const given = rest.map((word) => /^:(domain|hits)=(.*)$/.exec(word));
  const find = (name: string) => given.find((each) => each?.[1] === name)?.[2];
  const descriptors = rest.filter((_, index) => given[index] === null).map(toDescriptor);
  const outcome = await seen.worker.decide({
    ...ask(...descriptors),
    domain: find('domain') ?? 'd',
    hitsAddend: Number(find('hits') ?? 0),
  });
  const trail = seen.worker.log.lines.splice(0).filter((line) => line.startsWith('debug '));
  const lines = trail.map((line) => line.slice('debug '.length));
  return [...lines, ...toOutcomeLines(outcome), ...findChanges(seen)].join('\n');
}

function testFile(name: string): void {
  const file = new URL(`scenarios/${name}.txt`, import.meta.url);
  testScenarios(test, file, async (words, { folder }) => ({ out: await run(words, folder) }));
}

// Proof of migrating.md: Hits that do not fit into a counter (2^63-1) are over the limit
// Proof of migrating.md: A limit in the request with an unknown unit fails the call
testFile('limits');

// Proof of migrating.md: `unit_multiplier`, `algorithm`, `burst`, `count_over_limit`, `rate_limits`, `until`, `lease`
testFile('limiters');
testFile('local-cache');
testFile('client-fields');
testFile('metadata');
testFile('without-store');
testFile('stop-where-refused');
testFile('trail');

test('the clock of the scenarios begins at 12:00:15', (t) => {
  t.is(new Date(start).toISOString(), '2026-11-21T12:00:15.000Z');
});
