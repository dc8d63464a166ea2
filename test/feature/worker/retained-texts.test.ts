// Texts of requests are kept in many places, each with a bounded number: each must keep only the text in memory, not
// the request. A worker with a small heap is flooded with large bodies, each with a different short text.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { createControlPlaneProcess } from '../../support/control-plane-process.ts';
import { eventually } from '../../support/eventually.ts';
import { programFile, workerNodeFlags } from '../../support/programs.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

/** V8's limit for long-lived objects: an idle worker needs half of it. */
const heapMiB = 64;
/** The largest request; all requests of a place together exceed the heap. */
const bodyBytes = 500_000;
const requests = 150;
const atOnce = 8;

const rules = `domain: d
descriptors:
  - {key: counted, rate_limit: {unit: day, requests_per_unit: 1000}}
  - {key: sliding, rate_limit: {unit: day, requests_per_unit: 1000, algorithm: sliding_window}}
  - {key: bucket, rate_limit: {unit: day, requests_per_unit: 1000, algorithm: token_bucket}}
  - {key: leased, rate_limit: {unit: day, requests_per_unit: 1000, lease: {share: 50%, for: 10s}}}
  - {key: limited, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: named, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 1000}}
  - {key: named and limited, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: begins, value: a text*, value_to_metric: true, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: shared, value: a text*, share_threshold: true, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: quota, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 0}}
`;

const keys = [
  ...['counted', 'sliding', 'bucket', 'leased', 'limited', 'named', 'named and limited'],
  ...['begins', 'shared', 'shadow', 'quota'],
];
/** Each request puts the text where it is kept. */
const positions: Readonly<Record<string, (text: string) => unknown>> = {
  'rules, a key without one and a limit of the request': (text) => ({
    domain: 'd',
    descriptors: [
      ...keys.map((key) => ({ entries: [{ key, value: text }] })),
      { entries: [{ key: text, value: text }] },
      { entries: [{ key: 'own', value: text }], limit: { requests_per_unit: 1000, unit: 'DAY' } },
    ],
  }),
  'refunds, which a cache remembers': (text) => ({
    domain: 'd',
    descriptors: keys.map((key) => ({ entries: [{ key, value: text }], is_negative_hits: true })),
  }),
  'a mistake, which is answered and logged': (text) => ({
    domain: '',
    descriptors: [{ entries: [{ key: text, value: text }] }],
  }),
  'a domain without rules': (text) => ({
    domain: text,
    descriptors: [{ entries: [{ key: 'k', value: 'v' }] }],
  }),
};

const { ShouldRateLimit: method } = loadProtos().rateLimitService;

/** A request with an unknown field. */
function toLargeMessage(request: unknown): Buffer {
  const message = method?.requestSerialize(request as never) ?? Buffer.alloc(0);
  const length = bodyBytes - message.length;
  const head = [0xfa, 0x01, (length & 127) | 128, ((length >> 7) & 127) | 128, length >> 14];
  return Buffer.concat([message, Buffer.from(head), Buffer.alloc(length, 'x')]);
}

function toLargeJson(request: unknown): string {
  return JSON.stringify(request).padEnd(bodyBytes);
}

/** The request that is answered with an error. */
const isMistake = (request: unknown) => (request as { domain: string }).domain === '';

async function flood(ask: (request: unknown) => Promise<void>, port: string): Promise<void> {
  for (const [position, toRequest] of Object.entries(positions)) {
    let next = 0;
    const askOn = async () => {
      while (next < requests) {
        const request = toRequest(`a text by ${port} for ${position}, number ${next++}`);
        await ask(request).catch((cause: unknown) => {
          throw new Error(`${port}, ${position}, ${next} requests: ${cause}`, { cause });
        });
      }
    };
    await Promise.all(Array.from({ length: atOnce }, askOn));
  }
}

function createCaller(t: ExecutionContext, port: number) {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  return (request: unknown) =>
    new Promise<void>((resolve, reject) => {
      client.makeUnaryRequest(
        method?.path ?? '',
        (bytes: Buffer) => bytes,
        (bytes) => bytes,
        toLargeMessage(request),
        { deadline: Date.now() + 60_000 },
        (error) => (error === null || isMistake(request) ? resolve() : reject(error)),
      );
    });
}

test('no place that keeps a text of a request keeps the request, on either port', async (t) => {
  t.timeout(400_000);
  const folder = mkdtempSync(join(tmpdir(), 'ratelane-'));
  writeFileSync(join(folder, 'rules.yaml'), rules);
  const controlPlane = await createControlPlaneProcess(t, { flags: ['--config-dir', folder] });
  await controlPlane.start();
  const worker = await startWorkerProcess(t, {
    program: [
      process.execPath,
      `--max-old-space-size=${heapMiB}`,
      ...workerNodeFlags,
      programFile('worker'),
    ],
    env: {
      BACKEND_TYPE: 'memory',
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: controlPlane.xdsAddress,
      LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
      RECORD_DECISIONS: join(folder, 'decisions.jsonl'),
      RECORD_DECISIONS_RATE: '1',
      TRACING_ENABLED: 'true',
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    },
  });
  const postJson = async (request: unknown) => {
    const body = toLargeJson(request);
    const answer = await fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
      method: 'POST',
      body,
    });
    const text = await answer.text();
    if (answer.status !== 200 && answer.status !== 429 && !isMistake(request))
      throw new Error(text);
  };
  await eventually('rules', async () => (await worker.page('/rlconfig')).includes('d.counted'));
  await flood(createCaller(t, worker.ports.grpc), 'gRPC');
  await flood(postJson, '/json');
  const stats = await worker.page('/stats');
  t.regex(stats, /localcache\.entryCount: [1-9]/);
  t.is(worker.ended(), undefined);
  t.regex(await worker.page('/unmatched'), /for a (domain|key) without/);
  // Limited values are reported to the control plane, too.
  t.is((await fetch(`${controlPlane.adminUrl}/healthcheck`)).status, 200);
});
