// Runs the how-to guides as written: their calls through a real Envoy, and the tests of their rules.

import { readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'yaml';
import { systemClock } from '../../shared/clock.ts';
import { runInProcess } from '../support/command-run.ts';
import { startEchoServer } from '../support/echo-server.ts';
import { startEnvoy } from '../support/envoy.ts';
import {
  http2Fields,
  type JsonObject,
  toCluster,
  toEnvoyConfig,
  toListener,
} from '../support/envoy-config.ts';
import { eventually } from '../support/eventually.ts';
import { findFencedBlocks } from '../support/fenced-blocks.ts';
import { freePort } from '../support/free-port.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { startWorker } from '../support/worker-in-process.ts';

const read = (page: string) =>
  readFileSync(join(import.meta.dirname, '../../worker/docs', page), 'utf8');
/** The sections of the page that contain rules, except that on token budgets. */
const guides = new Map(
  [...read('envoy.md').split('\n## ').slice(1), read('ai-gateways.md')].flatMap((section) => {
    const title = section.split('\n')[0]?.replace(/^# /, '') ?? '';
    return section.includes('\n```yaml test\n') ? [[title, section]] : [];
  }),
);
const aiGateways = 'AI gateways';

/** The block `yaml envoy` of a guide: parts of the configuration. */
interface EnvoyPart {
  /** The path of the route with the rate limit; default `/`. */
  readonly path?: string;
  /** Fields of the connection manager. */
  readonly manager?: JsonObject;
  readonly filters?: readonly JsonObject[];
  readonly rate_limits: readonly JsonObject[];
}

function readGuide(name: string): (language: string) => string {
  const blocks = findFencedBlocks(guides.get(name) ?? '');
  return (language) => {
    const [found, ...others] = blocks.filter((block) => block.language === language);
    if (found === undefined || others.length > 0) {
      throw new Error(`${name} has not one block of ${language}`);
    }
    return found.text;
  };
}

/** The address of a proxy with the guide's configuration, whose worker's clock is stopped. */
async function startProxy(
  t: ExecutionContext,
  rules: string,
  { path = '/', manager = {}, filters = [], rate_limits: rateLimits }: EnvoyPart,
): Promise<string> {
  const upstreamPort = await startEchoServer(t);
  const grpcPort = await freePort();
  const worker = await startWorker(t, {
    env: {
      BACKEND_TYPE: 'memory',
      GRPC_PORT: `${grpcPort}`,
      LIMIT_RATELIMIT_ENABLED: 'true',
      RESPONSE_DYNAMIC_METADATA: 'true',
    },
    rules,
    clock: { ...systemClock, wallMs: () => Date.UTC(2026, 0, 1) },
  });
  await worker.started;
  const port = await freePort();
  const routes = [
    { path, rateLimits },
    { path: '/', rateLimits: [] },
  ];
  const { domain } = parse(rules) as { domain: string };
  const listener = toListener({ port, rateLimit: { domain }, routes, filters, manager });
  const clusters = [
    toCluster('upstream', [upstreamPort]),
    toCluster('workers', [grpcPort], http2Fields),
  ];
  await startEnvoy(t, toEnvoyConfig([listener], clusters), port);
  return `http://127.0.0.1:${port}`;
}

async function call(url: string, headers: readonly string[]): Promise<number> {
  const answer = await fetch(url, {
    headers: headers.map((header): [string, string] => {
      const at = header.indexOf('=');
      return [header.slice(0, at), header.slice(at + 1)];
    }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

async function makeCalls(t: ExecutionContext, proxy: string, calls: string): Promise<void> {
  for (const line of calls.trim().split('\n')) {
    const [request = '', statuses = ''] = line.split(' -> ');
    const [path = '', ...headers] = request.split(' ');
    for (const status of statuses.split(' ')) {
      t.is(await call(`${proxy}${path}`, headers), Number(status), line);
    }
  }
}

// The calls in the page on AI gateways need a model behind the proxy, and have their own test.
for (const name of [...guides.keys()].filter((each) => each !== aiGateways)) {
  test(`${name}: calls through Envoy are answered as the guide states`, async (t) => {
    const blockOf = readGuide(name);
    const log = join(createTemporaryFolder(t), 'access.log');
    const part = parse(blockOf('yaml envoy').replace('/dev/stdout', log)) as EnvoyPart;
    await makeCalls(t, await startProxy(t, blockOf('yaml'), part), blockOf('calls'));
    if (part.manager?.['access_log'] === undefined) return;
    // Envoy writes these every ten seconds.
    const refusals = async () => /^429 .*$/m.exec(await readFile(log, 'utf8'))?.[0];
    await eventually('the line of the refusal', async () => (await refusals()) !== undefined);
    t.is(await refusals(), blockOf('log').trim());
  });
}

const ruleTests = [...guides.keys()].map((name) => [name, 'yaml'] as const);
for (const [name, language] of [...ruleTests, [aiGateways, 'yaml models'] as const]) {
  test(`${name}: the test of its rules (${language}) passes, and reaches every limit`, async (t) => {
    const blockOf = readGuide(name);
    const root = createTemporaryFolder(t);
    for (const part of ['rules', 'tests']) await mkdir(join(root, part));
    await writeFile(join(root, 'rules', 'rules.yaml'), blockOf(language));
    await writeFile(
      join(root, 'tests', 'rules_test.yaml'),
      `rules: ../rules/rules.yaml\n${blockOf(`${language} test`)}`,
    );
    const checked = await runInProcess(['check', '--strict', join(root, 'rules')]);
    t.is(checked.code, 0, checked.out);
    const { code, out } = await runInProcess(['test', join(root, 'tests'), '--coverage', '--json']);
    t.is(code, 0, out);
  });
}
