// The actions and observations of a case's steps: one function per kind of step. case-run.ts decides whether an
// observation is correct.
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Case, domainsOf, type Json, type Step } from './case-file.ts';
import { fillWindowStarts, withoutDefaults } from './comparison.ts';
import { callHealthCheck, callShouldRateLimit } from './grpc-call.ts';
import type { WorkerUnderTest } from './worker-under-test.ts';

const host = '127.0.0.1';
const httpDeadlineMs = 20_000;
const terminateDeadlineMs = 20_000;
const ruleStats = 'ratelimit.service.rate_limit.';

/** A running case. */
export interface Scene {
  readonly worker: WorkerUnderTest;
  readonly one: Case;
  /** The push metrics at its beginning. */
  readonly before: ReadonlyMap<string, number>;
}

type Perform = (scene: Scene, step: Step) => Promise<Json | undefined>;

/** Change something, without an observation. */
export const actions = {
  write: async ({ worker }, step) => worker.writeFiles(step.write ?? {}, step.in_place === true),
  remove: async ({ worker }, step) => worker.removeFiles(step.remove ?? []),
  chmod: async ({ worker }, step) => worker.touchModes(step.chmod ?? []),
  swap: async ({ worker }, step) => worker.swapRoot(step.swap ?? {}),
  sleep: async (_, step) => {
    await sleep((step.sleep ?? 0) * 1000);
  },
  redis_do: async ({ worker }, step) => {
    const redis = await worker.redis(step.server ?? 'redis');
    for (const words of step.redis_do ?? [])
      await redis.command(...words.map((word) => fillWindowStarts(String(word), Date.now())));
  },
  backend: async ({ worker }, step) => {
    const redis = await worker.redis('redis');
    await (step.backend === 'stop' ? redis.kill() : redis.restart());
  },
} as const satisfies Record<string, (scene: Scene, step: Step) => Promise<void>>;

/** Send a request and observe the answer at once. */
export const questions = {
  json: async ({ worker }, step) => {
    const body = typeof step.json === 'string' ? step.json : JSON.stringify(step.json);
    const answer = await httpCall(worker.process.ports.http, step.path ?? '/json', {
      method: step.method ?? 'POST',
      headers: step.headers ?? { 'Content-Type': 'application/json' },
      body,
    });
    const seen: { [key: string]: Json } = { status: answer.status };
    if (answer.status === 200 || answer.status === 429) {
      const parsed = parseJson(answer.text);
      Object.assign(
        seen,
        parsed === undefined ? { text: answer.text } : { body: withoutDefaults(parsed) },
      );
    }
    if (step.show_headers !== undefined) {
      seen['headers'] = Object.fromEntries(
        step.show_headers.map((name) => [name, answer.headers[name.toLowerCase()] ?? null]),
      );
    }
    return seen;
  },
  grpc_health: ({ worker }, step) =>
    callHealthCheck(worker.grpcTarget, step.grpc_health ?? '', callOptions(step)),
  grpc: async ({ worker }, step) => {
    const answer = await callShouldRateLimit(worker.grpcTarget, step.grpc ?? {}, callOptions(step));
    const isRefused = answer['grpcStatus'] === 14;
    return step.may_fail === true && isRefused ? { refused: true } : answer;
  },
  get: async ({ worker }, step) => {
    const { ports } = worker.process;
    const port = step.port === 'metrics' ? worker.metricsPort : ports[step.port ?? 'http'];
    const answer = await httpCall(port, step.get ?? '/', { method: 'GET' }).catch(() => undefined);
    if (answer === undefined) return { refused: true };
    const seen: { [key: string]: Json } = { status: answer.status };
    if (step.show === 'text') seen['text'] = answer.text.trim();
    if (step.show === 'paths') {
      const paths = answer.text.split('\n').map((line) => (line.split(':')[0] ?? '').trim());
      seen['paths'] = paths.filter((path) => step.of?.includes(path)).sort();
    }
    return seen;
  },
  terminate: async ({ worker }) => {
    worker.process.signal('SIGTERM');
    return { exit: (await worker.process.waitForEnd(terminateDeadlineMs)) ?? 'timeout' };
  },
} as const satisfies Record<string, Perform>;

/** Observe a later effect: repeated until it is as expected. */
export const reads = {
  rlconfig: async ({ worker, one }, step) => {
    const domains = step.rlconfig?.length ? step.rlconfig : domainsOf(one);
    const { text } = await httpCall(worker.process.ports.debug, '/rlconfig', { method: 'GET' });
    return text
      .split('\n')
      .map((line) => line.replace(/,? ?quota_mode: \w+/, '').trim())
      .filter((line) => domains.some((domain) => line.startsWith(`${domain}.`)))
      .sort();
  },
  stats: async (scene, step) => {
    const found = counterIncreases(scene, step.stats ?? []);
    if (step.sum === true)
      return { sum: Object.values(found).reduce((sum, value) => sum + value, 0) };
    const { only } = step;
    return only === undefined
      ? found
      : Object.fromEntries(
          Object.entries(found).filter(([name]) => only.includes(name.split('.').at(-1) ?? '')),
        );
  },
  wire: async ({ worker, before }, step) => {
    const pattern = new RegExp(step.wire ?? '');
    const found: { [key: string]: Json } = {};
    for (const [label, value] of worker.statsd.totals) {
      const increase = value - (before.get(label) ?? 0);
      const [name, type] = label.split('|');
      if (increase === 0 || !pattern.test(label)) continue;
      if (step.names_only === true) {
        found[`${name}|${type}`] = 'seen';
      } else {
        found[label] = type === 'c' ? increase : 'seen';
      }
    }
    return found;
  },
  metrics: async ({ worker }, step) => {
    const path = step.path ?? '/metrics';
    const { status, text } = await httpCall(worker.metricsPort, path, { method: 'GET' });
    const pattern = new RegExp(step.metrics ?? '');
    const found: { [key: string]: Json } = {};
    for (const line of status === 200 ? text.split('\n') : []) {
      if (line === '' || line.startsWith('#') || !pattern.test(line)) continue;
      const end = line.lastIndexOf(' ');
      found[line.slice(0, end)] = step.seen === true ? 'seen' : Number(line.slice(end + 1));
    }
    return found;
  },
  redis: async ({ worker }, step) => {
    const redis = await worker.redis(step.server ?? 'redis');
    const keys = (await redis.command('KEYS', step.redis ?? '')) as string[];
    const rows: Json[] = [];
    for (const key of keys.sort()) {
      const value = await redis.command('GET', key);
      rows.push({ key, value: String(value), ttl: Number(await redis.command('TTL', key)) });
    }
    return rows;
  },
  memcached: async ({ worker }, step) => {
    const memcached = await worker.memcached();
    const seen: { [key: string]: Json } = {};
    for (const key of step.memcached ?? [])
      seen[key] = (await memcached.get(fillWindowStarts(key, Date.now()))) ?? null;
    return seen;
  },
  output: async ({ worker }, step) => {
    const text = worker.process.output();
    return Object.fromEntries((step.output ?? []).map((part) => [part, text.includes(part)]));
  },
  log_format: async ({ worker }) => {
    let found: Json = { format: 'none' };
    for (const line of worker.process.output().split('\n')) {
      const fields = line.startsWith('{') ? parseJson(line) : undefined;
      if (fields !== undefined) {
        found = { format: 'json', fields: Object.keys(fields as object).sort() };
      } else if (/^time=\S+ level=\w+ msg=/.test(line)) {
        found = { format: 'text', fields: ['level', 'msg', 'time'] };
      }
    }
    return found;
  },
} as const satisfies Record<string, Perform>;

/** How much counters have increased since the case began, without zeros. A prefix ends with a dot, and is relative to
 * the rules' statistics unless it begins with `ratelimit`. */
export function counterIncreases(
  { worker, before }: Pick<Scene, 'worker' | 'before'>,
  prefixes: readonly string[],
): Record<string, number> {
  const wanted = prefixes.map((text) => (text.startsWith('ratelimit') ? text : ruleStats + text));
  const found: Record<string, number> = {};
  for (const [label, value] of worker.statsd.totals) {
    const [name = '', type] = label.split('|');
    const increase = value - (before.get(label) ?? 0);
    const isWanted = wanted.some(
      (text) => name === text || (text.endsWith('.') && name.startsWith(text)),
    );
    if (type === 'c' && increase !== 0 && isWanted) {
      const short = name.startsWith(ruleStats) ? name.slice(ruleStats.length) : name;
      found[short] = (found[short] ?? 0) + increase;
    }
  }
  return found;
}

function callOptions(step: Step): { tls: string | undefined; showText: boolean } {
  return { tls: step.tls, showText: step.show_text === true };
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

function httpCall(
  port: number,
  path: string,
  options: { method: string; headers?: Readonly<Record<string, string>>; body?: string },
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const body = options.body === undefined ? undefined : Buffer.from(options.body);
    const call = request(
      {
        host,
        port,
        path,
        method: options.method,
        // A fixed length, which browsers and proxies also send with methods that seldom have a body.
        headers: { ...options.headers, ...(body && { 'Content-Length': body.length }) },
        agent: false,
        timeout: httpDeadlineMs,
      },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (chunk: string) => {
          text += chunk;
        });
        answer.on('error', reject);
        answer.on('end', () => {
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text });
        });
      },
    );
    call.on('timeout', () => call.destroy(new Error(`no answer within ${httpDeadlineMs} ms`)));
    call.on('error', reject);
    call.end(body);
  });
}
