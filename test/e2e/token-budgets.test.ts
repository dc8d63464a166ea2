// Runs the guide to budgets for language-model tokens as written: a real Envoy, a model that reports its usage, and a
// worker with a manual clock.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'yaml';
import { startEnvoy } from '../support/envoy.ts';
import { eventually } from '../support/eventually.ts';
import { findFencedBlocks } from '../support/fenced-blocks.ts';
import { freePort } from '../support/free-port.ts';
import { listenFor } from '../support/listen.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { startWorker } from '../support/worker-in-process.ts';

const page = readFileSync(join(import.meta.dirname, '../../worker/docs/ai-gateways.md'), 'utf8');
const blocks = findFencedBlocks(page);

function blockOf(language: string): string {
  const [found, ...others] = blocks.filter((block) => block.language === language);
  if (found === undefined || others.length > 0) throw new Error(`not one block of ${language}`);
  return found.text;
}

/** The page's configuration, with the model from the body in the descriptor. */
function withModels(yaml: string): string {
  const { filter, actions } = parse(blockOf('yaml models envoy')) as {
    filter: object;
    actions: [];
  };
  const text = JSON.stringify(parse(yaml))
    .replaceAll(/"actions":\[.*?\]/g, () => `"actions":${JSON.stringify(actions)}`)
    .replace('"domain":"llm"', '"domain":"models"');
  return text.replace('"http_filters":[', () => `"http_filters":[${JSON.stringify(filter)},`);
}

/** Starts a model that uses as many tokens as the header requests. */
async function startModel(t: ExecutionContext): Promise<number> {
  const server = createServer((request, response) => {
    request.resume();
    const tokens = request.headers['x-tokens'];
    response.setHeader('content-type', 'application/json');
    if (tokens === undefined) response.end('{"error": "no prompt"}');
    else response.end(JSON.stringify({ choices: [], usage: { total_tokens: Number(tokens) } }));
  });
  return await listenFor(t, server);
}

function replaceOnce(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2) throw new Error(`not once in the page: ${from}`);
  return text.replace(from, to);
}

async function startBudget(t: ExecutionContext, rules: string, complete = (yaml: string) => yaml) {
  const [grpcPort, httpPort, envoyPort] = [await freePort(), await freePort(), await freePort()];
  const modelPort = await startModel(t);
  const clock = createManualClock(Date.UTC(2026, 0, 1));
  const worker = await startWorker(t, {
    env: {
      BACKEND_TYPE: 'memory',
      GRPC_HOST: '127.0.0.1',
      GRPC_PORT: String(grpcPort),
      PORT: String(httpPort),
    },
    rules,
    clock,
  });
  const socket = (host: string, port: number) =>
    `socket_address: { address: ${host}, port_value: ${port} }`;
  let yaml = blockOf('yaml envoy');
  yaml = replaceOnce(yaml, socket('0.0.0.0', 10000), socket('127.0.0.1', envoyPort));
  yaml = replaceOnce(yaml, socket('model', 8000), socket('127.0.0.1', modelPort));
  yaml = replaceOnce(yaml, socket('ratelane', 8081), socket('127.0.0.1', grpcPort));
  await startEnvoy(t, complete(yaml), envoyPort);
  const chargesOf = async () => {
    const stats = await worker.page('/stats');
    const counts = stats.matchAll(/^ratelimit\.service\.rate_limit\..*\.total_hits: (\d+)$/gm);
    return counts.reduce((sum, [, hits]) => sum + Number(hits), 0);
  };
  return {
    clock,
    /** Returns the status, once the usage has been charged. */
    async call(tokens: number, body = '{}', type = 'application/json'): Promise<number> {
      const before = await chargesOf();
      const headers = { 'x-customer': 'ada', 'x-tokens': String(tokens), 'content-type': type };
      const url = `http://127.0.0.1:${envoyPort}/v1/chat`;
      const answer = await fetch(url, { method: 'POST', headers, body });
      await answer.arrayBuffer();
      if (answer.status === 200)
        await eventually('the charge', async () => (await chargesOf()) >= before + tokens);
      return answer.status;
    },
    /** A call whose response has no usage. */
    async callInVain(): Promise<number> {
      const headers = { 'x-customer': 'ada' };
      const answer = await fetch(`http://127.0.0.1:${envoyPort}/v1/chat`, { headers });
      await answer.arrayBuffer();
      return answer.status;
    },
    /** `40 left` or `12s to wait`; checked as Envoy does before a call. */
    async whatIsLeft(): Promise<string> {
      const descriptor = { entries: [{ key: 'customer', value: 'ada' }], hitsAddend: 0 };
      const body = JSON.stringify({ domain: 'llm', descriptors: [descriptor] });
      const answer = await fetch(`http://127.0.0.1:${httpPort}/json`, { method: 'POST', body });
      const { statuses } = (await answer.json()) as {
        statuses: { code: string; limitRemaining?: number; durationUntilReset: string }[];
      };
      const [status] = statuses;
      return status?.code === 'OK'
        ? `${status.limitRemaining ?? 0} left`
        : `${status?.durationUntilReset} to wait`;
    },
  };
}

test('calls are admitted as the guide states', async (t) => {
  const { clock, call, whatIsLeft } = await startBudget(t, blockOf('yaml'));
  const beganMs = clock.wallMs();
  for (const line of blockOf('calls').trim().split('\n')) {
    const [, seconds] = /^at (\d+)s$/.exec(line) ?? [];
    if (seconds !== undefined) {
      clock.advance(beganMs + Number(seconds) * 1000 - clock.wallMs());
      continue;
    }
    const [, tokens, status, left] = /^(\d+) -> (\d+)(?:, then (.+))?$/.exec(line) ?? [];
    t.is(await call(Number(tokens)), Number(status), line);
    if (left !== undefined) t.is(await whatIsLeft(), left, line);
  }
});

test('each model has a budget, selected by the body of the request, and a request without a model is still limited', async (t) => {
  const { call } = await startBudget(t, blockOf('yaml models'), withModels);
  const large = '{"model": "large-1"}';
  t.is(await call(1_200, large), 200);
  t.is(await call(1, large), 429);
  t.is(await call(1, '{"model": "large-2"}'), 200);
  for (const type of ['application/json', 'text/plain']) t.is(await call(3_000, '{', type), 200);
  t.is(await call(1, large, 'text/plain'), 429);
});

test('a response without usage costs nothing', async (t) => {
  const { call, callInVain, whatIsLeft } = await startBudget(t, blockOf('yaml'));
  t.is(await call(60), 200);
  for (let again = 0; again < 5; again++) t.is(await callInVain(), 200);
  t.is(await whatIsLeft(), '40 left');
});
