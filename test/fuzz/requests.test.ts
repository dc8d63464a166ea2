// Sends decision requests that no Envoy would: as JSON, and as bytes on the HTTP ports.
// worker/listen/grpc/request-decoder.test.ts does so with protobuf, and compares with a second reader.
import { once } from 'node:events';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import type { RateLimitRequest } from '../../worker/decision/message.ts';
import { createHealth } from '../../worker/health.ts';
import { createDebugServer } from '../../worker/listen/debug.ts';
import { createHttpServer } from '../../worker/listen/http.ts';
import { parseJsonRequest } from '../../worker/listen/proto-json-reader.ts';
import type { Random } from '../support/random.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { damageBytes, damageJson, damageText, strangeWords } from './damage.ts';
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

function toRequest(random: Random): RateLimitRequest {
  const text = () =>
    random.pick(['', 'a', 'domain', 'x'.repeat(100), 'é€😀', ...strangeWords]).toWellFormed();
  const some = <T>(most: number, make: () => T) =>
    Array.from({ length: random.below(most + 1) }, make);
  return {
    domain: text(),
    descriptors: some(4, () => ({
      entries: some(4, () => ({ key: text(), value: text() })),
      limit: random.chance(0.3)
        ? { requestsPerUnit: random.below(2 ** 32), unit: random.below(8) }
        : undefined,
      hitsAddend: random.chance(0.3) ? random.below(2 ** 52) : undefined,
      isNegativeHits: random.chance(0.3),
    })),
    hitsAddend: random.pick([0, 1, 2 ** 32 - 1]),
  };
}

const jsonWords = [
  ...['{', '}', '[', ']', ',', ':', '"', '\\', '\\u0000', '\\ud800', '/', '"key"', '"value":'],
  ...['"domain":"a"', '"descriptors":[', '"entries":[{', '"hitsAddend":', '"hits_addend":"1"'],
  ...['"limit":{"unit":"WEEK"}', '"unit":"HOUR"', 'null', 'true', '1e9', '-', '0.', '1.0', '+1'],
  ...['"__proto__":{}', '"constructor":1', '\ufeff', ' ', '\n', '\u0001', '0x1', '1'],
];

test.serial('any /json body is a request, or a problem with its line and column', async (t) => {
  let accepted = 0;
  await fuzz(t, '/json bodies', (random) => {
    const request = toRequest(random);
    const value = random.chance(0.5) ? damageJson(random, request) : request;
    const full = JSON.stringify(value, null, random.pick([0, 2]));
    const text = random.chance(0.6) ? damageText(random, full, jsonWords) : full;
    const bytes = random.chance(0.1) ? damageBytes(random, Buffer.from(text)) : Buffer.from(text);
    const parsed = parseJsonRequest(bytes);
    if (!parsed.ok) {
      checkNamedProblem(parsed.problem);
      const hasPosition = /^\(line \d+:\d+\): ./.test(parsed.problem);
      if (!hasPosition && parsed.problem !== 'the body is not UTF-8')
        throw new Error(parsed.problem);
      if (parsed.problem.length > 400) throw new Error(`${parsed.problem.length} characters`);
      return;
    }
    accepted++;
    // Invalid JSON is never a request.
    JSON.parse(bytes.toString());
    checkRequest(parsed.request);
  });
  t.log(`${accepted} accepted`);
  t.true(accepted > 0);
});

/** The types that the decision relies on. */
function checkRequest({ domain, descriptors, hitsAddend }: RateLimitRequest): void {
  const isRight =
    typeof domain === 'string' &&
    isCount(hitsAddend, 2 ** 32 - 1) &&
    descriptors.every(
      (descriptor) =>
        descriptor.entries.every(
          ({ key, value }) => typeof key === 'string' && typeof value === 'string',
        ) &&
        typeof descriptor.isNegativeHits === 'boolean' &&
        (descriptor.limit === undefined ||
          (isCount(descriptor.limit.requestsPerUnit, 2 ** 32 - 1) &&
            Number.isInteger(descriptor.limit.unit))) &&
        (descriptor.hitsAddend === undefined ||
          typeof descriptor.hitsAddend === 'bigint' ||
          isCount(descriptor.hitsAddend, Number.MAX_SAFE_INTEGER)),
    );
  if (!isRight) throw new Error(`a request of other types: ${JSON.stringify(domain)}`);
}

function isCount(value: unknown, most: number): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= most;
}

const heads = [
  'POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}',
  'POST /json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
  'GET /healthcheck HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /rlconfig?a=b HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n',
  'GET /debug/pprof/profile?seconds=x HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /stats HTTP/1.0\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n',
];
const headWords = [
  ...['\r\n', '\n', '\r', ': ', 'GET ', 'TRACE ', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'HTTP/1.1'],
  ...['Content-Length: 0\r\n', 'Content-Length: -1\r\n', 'Content-Length: 99999999999\r\n'],
  ...['Transfer-Encoding: chunked\r\n', 'Upgrade: websocket\r\n', 'Connection: upgrade\r\n'],
  ...['Host: b\r\n', 'Cookie: a\r\n', '/json', '/%00', '/../../x', '?', '#', '%', '%zz', '//'],
  ...['ffffffff\r\n', '0\r\n\r\n', 'X: '.padEnd(20_000, 'y')],
];

async function startPorts(t: ExecutionContext) {
  const log = createRecordedLog();
  const http = createHttpServer(
    {
      shouldRateLimit(decision) {
        const nothing = { responseHeadersToAdd: [], requestHeadersToAdd: [] };
        decision.answer({
          ok: true,
          response: { overallCode: 1, statuses: [], dynamicMetadata: undefined, ...nothing },
        });
      },
      health: createHealth({ requireConfig: false }),
      duration: { observe() {} },
      log,
      clock: systemClock,
    },
    { host: '127.0.0.1', port: 0 },
  );
  const providers = {
    rules: () => [],
    stats: () => new Map([['a', 1]]),
    settings: () => [],
    status: () => [],
    unmatched: () => Promise.resolve([]),
  };
  const debug = createDebugServer(
    { providers, log, clock: systemClock },
    { host: '127.0.0.1', port: 0 },
  );
  const addresses = [await http.start(), await debug.start()];
  t.teardown(async () => {
    await http.stop(0);
    await debug.stop(0);
  });
  return { log, addresses };
}

/** What the port sends until it closes, or is silent. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    answer += chunk;
    // One answer is enough; most of these requests do not reveal where it ends.
    socket.end();
  });
  socket.on('error', () => {});
  socket.end(bytes, 'latin1');
  await once(socket, 'close', { signal: AbortSignal.timeout(60_000) });
  return answer;
}

test.serial('the HTTP ports answer any bytes with a status, and stay open', async (t) => {
  const { log, addresses } = await startPorts(t);
  let answered = 0;
  await fuzz(t, 'HTTP requests', async (random) => {
    const { port = 0 } = random.pick(addresses);
    const full = random.chance(0.2) ? random.pick(heads).repeat(2) : random.pick(heads);
    const answer = await exchange(port, damageText(random, full, headWords));
    if (answer === '') return;
    answered++;
    // 409: an earlier request has started a profile.
    if (!/^HTTP\/1\.1 (?:100|200|400|404|405|408|409|413|417|429|431|501) /.test(answer)) {
      throw new Error(`answered with ${answer.slice(0, 300)}`);
    }
    if (/\r\nx-injected:/i.test(answer)) throw new Error(`a header was put in: ${answer}`);
  });
  t.log(`${answered} answered`);
  t.true(answered > 0);
  for (const { port = 0 } of addresses) {
    const answer = await exchange(port, 'GET /healthcheck HTTP/1.1\r\nHost: a\r\n\r\n');
    t.regex(answer, /^HTTP\/1\.1 200 /);
  }
  t.deepEqual(
    log.lines.filter((line) => line.startsWith('error')),
    [],
  );
});
