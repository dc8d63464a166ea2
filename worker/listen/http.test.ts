import { once } from 'node:events';
import { request as httpRequest, METHODS } from 'node:http';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { AppError } from '../../shared/errors.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import type { RateLimitRequest, RateLimitResponse } from '../decision/message.ts';
import { maxRequestBytes } from '../decision/request-bounds.ts';
import type { Decision, ShouldRateLimit } from '../decision/should-rate-limit.ts';
import { LargeRequests, maxWaitingBytes } from '../grpc/large-requests.ts';
import { createHealth } from '../health.ts';
import { createHttpServer, type HttpDeps } from './http.ts';

function answerWith(response: Partial<RateLimitResponse>): ShouldRateLimit {
  return (decision) => {
    decision.answer({
      ok: true,
      response: {
        overallCode: 1,
        statuses: [],
        responseHeadersToAdd: [],
        requestHeadersToAdd: [],
        dynamicMetadata: undefined,
        ...response,
      },
    });
  };
}

function create(options: Partial<HttpDeps> = {}, port = 0) {
  const log = createRecordedLog();
  const health = createHealth({ requireConfig: false });
  const deps = { shouldRateLimit: answerWith({}), health, log, clock: systemClock };
  const server = createHttpServer(
    { ...deps, duration: { observe() {} }, ...options },
    { host: '127.0.0.1', port },
  );
  return { server, log, health };
}

async function start(
  t: ExecutionContext,
  shouldRateLimit: ShouldRateLimit = answerWith({}),
  options: Partial<HttpDeps> = {},
) {
  const created = create({ shouldRateLimit, ...options });
  const address = await created.server.start();
  t.teardown(() => created.server.stop(0));
  return { ...created, address, url: `http://${address.text}` };
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** Unlike fetch, can send any method with any body. */
function send(
  url: string,
  method: string,
  body = '',
  headers: Record<string, string> = {},
): Promise<Answer> {
  const length = { 'content-length': `${Buffer.byteLength(body)}` };
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      {
        method,
        agent: false,
        headers: 'transfer-encoding' in headers ? headers : { ...length, ...headers },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    request.setTimeout(60_000, () => request.destroy(new Error('no answer')));
    request.on('error', reject);
    request.end(body);
  });
}

test('a decision within the limits is 200, one over them 429', async (t) => {
  const asked: RateLimitRequest[] = [];
  let code: 1 | 2 = 1;
  const { url, log, address } = await start(t, (decision) => {
    asked.push(decision.request);
    t.is(decision.deadlineMs, Number.POSITIVE_INFINITY);
    answerWith({ overallCode: code })(decision);
  });
  t.deepEqual(log.lines, [`notice Listening for HTTP on '${address.text}'`]);
  const body = '{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}';
  const within = await send(`${url}/json`, 'POST', body);
  t.is(within.status, 200);
  t.is(within.headers['content-type'], 'application/json');
  t.is(within.body, '{"overallCode":"OK"}');
  code = 2;
  const beyond = await send(`${url}/json`, 'POST', body);
  t.is(beyond.status, 429);
  t.is(beyond.headers['content-type'], 'application/json');
  t.is(beyond.body, '{"overallCode":"OVER_LIMIT"}');
  t.is(asked.length, 2);
  t.is(asked[0]?.descriptors[0]?.entries[0]?.value, 'v');
});

test('the body is read with any method and content type', async (t) => {
  const { url } = await start(t);
  for (const method of METHODS.filter((name) => name !== 'CONNECT')) {
    const { status, body } = await send(`${url}/json`, method, '{"domain":"d"}');
    t.is(status, 200, method);
    if (method !== 'HEAD') t.is(body, '{"overallCode":"OK"}', method);
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'nonsense', '; /']) {
    const { status } = await send(`${url}/json`, 'POST', '{"domain":"d"}', {
      'content-type': type,
    });
    t.is(status, 200, type);
  }
  const chunked = await send(`${url}/json`, 'POST', '{"domain":"d"}', {
    'transfer-encoding': 'chunked',
  });
  t.is(chunked.status, 200);
  t.is((await send(`${url}/json?debug=1`, 'POST', '{}')).status, 200);
});

test('each mistake in a request is Bad Request, and the log names it', async (t) => {
  const { url, log } = await start(t);
  for (const body of ['', '{', '{"extra":1}', '{"hitsAddend":-1}']) {
    const answer = await send(`${url}/json`, 'POST', body);
    t.like(answer, { status: 400, body: 'Bad Request\n' });
    t.is(answer.headers['content-type'], 'text/plain; charset=utf-8');
    t.is(answer.headers['x-content-type-options'], 'nosniff');
  }
  t.is((await send(`${url}/json`, 'GET')).status, 400);
  t.true(log.lines.includes('warning /json: (line 1:2): unknown field "extra"'));
  t.true(log.lines.includes('warning /json: (line 1:1): unexpected end instead of "{"'));
});

test('large requests wait for their turn, small ones do not', async (t) => {
  const largeRequests = new LargeRequests(() => systemClock.monotonicMs());
  const asked: string[] = [];
  const { url, address, log } = await start(
    t,
    (decision) => {
      asked.push(decision.request.domain.slice(0, 5));
      answerWith({})(decision);
    },
    { largeRequests },
  );
  const large = (domain: string) => JSON.stringify({ domain: domain.padEnd(5000, 'x') });
  // A request of another port uses all the room there is.
  const other = { bytes: maxWaitingBytes, begin() {} };
  t.true(largeRequests.add(other));
  t.true(await waitUntil(() => largeRequests.waitingBytes === 0, 60_000));
  const waiting = send(`${url}/json`, 'POST', large('first'));
  t.true(await waitUntil(() => largeRequests.waitingBytes > 5000, 60_000));
  const leaving = connect(address.port, '127.0.0.1');
  const body = large('leave');
  leaving.write(`POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  t.true(await waitUntil(() => largeRequests.waitingBytes > 10_000, 60_000));
  leaving.destroy();
  t.true(
    await waitUntil(() => largeRequests.waitingBytes < 10_000, 60_000),
    'who leaves is forgotten',
  );
  t.is((await send(`${url}/json`, 'POST', '{"domain":"small"}')).status, 200);
  t.deepEqual(asked, ['small']);
  const filling = { bytes: maxWaitingBytes - largeRequests.waitingBytes, begin() {} };
  t.true(largeRequests.add(filling));
  t.is((await send(`${url}/json`, 'POST', large('late'))).status, 503);
  t.true(log.lines.includes('warning /json: too many bodies are waiting for their turn'));
  largeRequests.over(filling);
  largeRequests.over(other);
  t.is((await waiting).status, 200);
  t.deepEqual(asked, ['small', 'first']);
  t.is(largeRequests.waitingBytes, 0);
});

test('a decision that fails for any reason is answered with 400 Bad Request', async (t) => {
  const { url, log } = await start(t, (decision) => {
    setImmediate(() =>
      decision.answer({ ok: false, error: new AppError('store', 'the store is down') }),
    );
  });
  const answer = await send(`${url}/json`, 'POST', '{}');
  t.like(answer, { status: 400, body: 'Bad Request\n' });
  t.true(log.lines.includes('warning /json: the store is down'));
});

test('the same failure many times is one line a second with a count', async (t) => {
  const { url, log, server } = await start(t);
  await Promise.all(Array.from({ length: 50 }, () => send(`${url}/json`, 'POST', '{')));
  await server.stop(1000);
  const lines = log.lines.filter((line) => line.includes('unexpected end'));
  t.true(lines.length >= 2 && lines.length < 20, lines.join('\n'));
  const counted = lines.map((line) => 1 + Number(/\(and (\d+) more/.exec(line)?.[1] ?? '0'));
  t.is(
    counted.reduce((sum, count) => sum + count, 0),
    50,
  );
});

// Proof of migrating.md: Requests are at most 512 KiB, bodies of `/json` too
test('a body that is too large is refused without being read to its end', async (t) => {
  const { url, log, address } = await start(t);
  const refused = await send(`${url}/json`, 'POST', ' '.repeat(maxRequestBytes + 1)).catch(
    (error: NodeJS.ErrnoException) => error.code,
  );
  // The connection is closed, possibly before the answer was read.
  if (typeof refused === 'object') {
    t.like(refused, { status: 413, body: 'Request Entity Too Large\n' });
  } else t.true(refused === 'EPIPE' || refused === 'ECONNRESET', refused);
  const socket = connect(address.port, '127.0.0.1');
  socket.on('error', () => {});
  let answer = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
  });
  socket.write('POST /json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
  for (let sent = 0; sent < 20 && !socket.destroyed; sent++) socket.write(chunk);
  t.true(await waitUntil(() => answer.startsWith('HTTP/1.1 413') || socket.destroyed, 60_000));
  socket.destroy();
  t.true(
    log.lines.some((line) => line.startsWith('warning /json: body of more than 524288 bytes')),
  );
  const allowed = `{"domain":"${'x'.repeat(500_000)}"}`;
  t.is((await send(`${url}/json`, 'POST', allowed)).status, 200);
});

test('metadata that JSON cannot write is an Internal Server Error', async (t) => {
  const { url } = await start(t, answerWith({ dynamicMetadata: { a: Number.NaN } }));
  const answer = await send(`${url}/json`, 'POST', '{}');
  t.like(answer, { status: 500, body: 'Internal Server Error\n' });
});

test('a decision that throws is an Internal Server Error, and the port continues to serve', async (t) => {
  let calls = 0;
  const { url, log } = await start(t, (decision) => {
    calls++;
    if (calls === 1) throw new Error('a defect');
    answerWith({})(decision);
  });
  const answer = await send(`${url}/json`, 'POST', '{}');
  t.like(answer, { status: 500, body: 'Internal Server Error\n' });
  t.true(log.lines.includes('error defect in the HTTP port: a defect'));
  t.is((await send(`${url}/json`, 'POST', '{}')).status, 200);
});

test('a caller that disconnects cancels its decision', async (t) => {
  const decisions: Decision[] = [];
  const { address } = await start(t, (decision) => void decisions.push(decision));
  const socket = connect(address.port, '127.0.0.1');
  socket.write('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}');
  t.true(await waitUntil(() => decisions.length === 1, 60_000));
  socket.destroy();
  t.true(await waitUntil(() => decisions[0]?.cancelled === true, 60_000));
});

test('the health check has the worker’s health, with any method', async (t) => {
  const { url, health } = await start(t);
  for (const method of ['GET', 'POST', 'DELETE', 'PROPFIND', 'OPTIONS']) {
    const answer = await send(`${url}/healthcheck`, method);
    t.like(answer, { status: 200, body: 'OK' });
    t.is(answer.headers['content-type'], 'text/plain; charset=utf-8');
  }
  const head = await send(`${url}/healthcheck`, 'HEAD');
  t.is(head.status, 200);
  t.is(head.headers['content-length'], '2');
  health.set('store', false);
  const unhealthy = await send(`${url}/healthcheck`, 'GET');
  t.like(unhealthy, { status: 500, body: '' });
});

test('other paths are not found', async (t) => {
  const { url } = await start(t);
  for (const path of ['/', '/nothing', '/json/', '/healthcheck/', '/JSON', '/metrics']) {
    for (const method of ['GET', 'POST', 'PROPFIND']) {
      const answer = await send(`${url}${path}`, method, '{}', { 'content-type': 'nonsense' });
      t.is(answer.status, 404, path);
      t.is(answer.body, '404 page not found\n');
      t.is(answer.headers['content-type'], 'text/plain; charset=utf-8');
    }
  }
});

test('paths and requests that are malformed are Bad Request', async (t) => {
  const { url, address } = await start(t);
  const answer = await send(`${url}/%zz`, 'GET');
  t.like(answer, { status: 400, body: 'Bad Request\n' });
  const socket = connect(address.port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write('this is no HTTP\r\n\r\n');
  await once(socket, 'close', { signal: AbortSignal.timeout(60_000) });
  t.true(text.startsWith('HTTP/1.1 400 '), text);
});

test('stopping lets a decision finish, and cuts it after the grace time', async (t) => {
  const dones: (() => void)[] = [];
  const pending: ShouldRateLimit = (decision) => {
    dones.push(() => answerWith({})(decision));
  };
  const patient = await start(t, pending);
  const answer = send(`${patient.url}/json`, 'POST', '{}');
  t.true(await waitUntil(() => dones.length === 1, 60_000));
  const stopped = patient.server.stop(30_000);
  await t.throwsAsync(send(`${patient.url}/json`, 'POST', '{}'));
  dones[0]?.();
  t.is((await answer).status, 200);
  await stopped;
  await patient.server.stop(0);

  const hasty = await start(t, pending);
  const cut = t.throwsAsync(send(`${hasty.url}/json`, 'POST', '{}'));
  t.true(await waitUntil(() => dones.length === 2, 60_000));
  await hasty.server.stop(50);
  await cut;
});

test('the duration of each answer is counted', async (t) => {
  const seconds: number[] = [];
  const duration = { observe: (each: number) => void seconds.push(each) };
  const { url } = await start(t, answerWith({}), { duration });
  await send(`${url}/json`, 'POST', '{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}]}');
  t.is(seconds.length, 1);
  t.true((seconds[0] ?? -1) >= 0);
});

test('the time of a large request begins with its arrival, not with its turn', async (t) => {
  const clock = createManualClock();
  const largeRequests = new LargeRequests(() => clock.monotonicMs());
  const received: number[] = [];
  const { url } = await start(
    t,
    (decision) => {
      received.push(decision.receivedMs);
      answerWith({})(decision);
    },
    { largeRequests, clock },
  );
  const atWork = { bytes: maxRequestBytes * 8, begin() {} };
  largeRequests.add(atWork);
  clock.advance(1000);
  const body = JSON.stringify({ domain: 'd'.repeat(2000) });
  const answer = send(`${url}/json`, 'POST', body);
  t.true(await waitUntil(() => largeRequests.waitingBytes === body.length, 60_000));
  clock.advance(4000);
  largeRequests.over(atWork);
  t.is((await answer).status, 200);
  t.deepEqual(received, [1000]);
});

test('callers that are asked to leave are answered, and their connections closed', async (t) => {
  const { server, url, address } = await start(t);
  t.false(server.turnAway(), 'before the first request');
  const socket = connect(address.port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.setEncoding('utf8');
  let received = '';
  socket.on('data', (text: string) => {
    received += text;
  });
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(60_000) });
  socket.write('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}');
  await closed;
  t.regex(received, /^HTTP\/1\.1 200 OK\r\n/);
  t.regex(received, /^connection: close\r$/m);
  t.regex(received, /^x-envoy-immediate-health-check-fail: true\r$/m);
  t.true(server.turnAway());
  t.is(server.asked, 1);
  t.is((await send(`${url}/json`, 'POST', '{}')).status, 200, 'new connections are still served');
});
