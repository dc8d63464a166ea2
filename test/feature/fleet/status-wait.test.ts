// Tests that `status --wait` meets its deadline, and tolerates a control plane that is briefly unreachable.
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { type CommandRun, runInProcess } from '../../support/command-run.ts';
import { listenFor } from '../../support/listen.ts';

const newest = { id: '1'.repeat(40), problems: [] };
const workers = { connected: 2 };
const inForce = { verdict: 'in_force', text: '', newest, workers, disagreements: [] };
const reported = 'revision 111111111111 is in force on all 2 connected workers\n';
const pending = { ...inForce, verdict: 'pending', text: 'not yet' };

/** Accepts connections, and sends only `answered` on them. */
async function listenInSilence(t: ExecutionContext, answered = ''): Promise<string> {
  const server = createTcpServer((socket) => void socket.write(answered));
  return `http://127.0.0.1:${await listenFor(t, server)}`;
}

interface Admin {
  readonly url: string;
  /** The number of requests. */
  readonly asked: () => number;
}

/** `listeners` answer one request each in order; the last one answers all further requests. */
async function serve(t: ExecutionContext, ...listeners: RequestListener[]): Promise<Admin> {
  let asked = 0;
  const server = createServer((request, response) => {
    const listener = listeners[Math.min(asked, listeners.length - 1)];
    asked++;
    listener?.(request, response);
  });
  return { url: `http://127.0.0.1:${await listenFor(t, server)}`, asked: () => asked };
}

function answer(status: number, body: object | string): RequestListener {
  return (_request, response) => {
    response.statusCode = status;
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

async function status(url: string, ...args: string[]) {
  const startedMs = performance.now();
  const run = await runInProcess(['status', '--admin-url', url, ...args]);
  return { ...run, tookMs: performance.now() - startedMs };
}

/** A process that stalls at the wrong moment receives nothing in time: then it is repeated once. */
async function statusUntil(
  isReported: (run: CommandRun) => boolean,
  url: string,
  ...args: string[]
) {
  let run = await status(url, ...args);
  for (let again = 0; again < 4 && !isReported(run); again++) run = await status(url, ...args);
  return run;
}

const silences: readonly [what: string, answered: string][] = [
  ['takes connections and never answers', ''],
  ['never ends its answer', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{'],
];

for (const [what, answered] of silences) {
  test(`--wait ends at its deadline when the address ${what}`, async (t) => {
    const url = await listenInSilence(t, answered);
    const { code, out, err } = await status(url, '--wait', '--timeout', '2s');
    t.is(code, 2);
    t.is(out, '');
    t.regex(
      err,
      /^error: the admin API at \S+ cannot be reached: no answer within (2|1[\d.]*)s\n/m,
    );
  });
}

test('--wait waits a second for an answer, however short its deadline is', async (t) => {
  const slow: RequestListener = (request, response) =>
    void setTimeout(() => answer(200, inForce)(request, response), 100);
  const { url } = await serve(t, slow);
  const args = ['--wait', '--timeout', '1ms'];
  t.like(await statusUntil(({ code }) => code === 0, url, ...args), { code: 0, out: reported });
});

test('--timeout without --wait is wrong usage, and sends no request', async (t) => {
  const { url } = await serve(t, () => t.fail('it was asked'));
  t.like(await status(url, '--timeout', '60s'), {
    code: 2,
    out: '',
    err: 'error: --timeout has no effect without --wait\n--help lists the arguments\n',
  });
});

for (const away of [502, 503, 504]) {
  test(`--wait retries after HTTP ${away}, until there is an answer`, async (t) => {
    const page = answer(away, '<h1>no server is behind this proxy</h1>');
    const { url, asked } = await serve(t, page, page, answer(200, pending), answer(200, inForce));
    t.like(await status(url, '--wait'), { code: 0, out: reported });
    t.is(asked(), 4);
  });

  test(`HTTP ${away} until the end is reported by --wait as no answer`, async (t) => {
    const { url, asked } = await serve(t, answer(away, { detail: 'no upstream' }));
    const refusal = `error: no upstream (HTTP ${away})\n`;
    const isReported = ({ err }: CommandRun) => asked() > 1 && err.endsWith(refusal);
    const run = await statusUntil(isReported, url, '--wait', '--timeout', '1s');
    const { code, out, err, tookMs } = run;
    t.is(code, 2);
    t.is(out, '');
    t.true(err.endsWith(refusal), err);
    t.true(asked() > 1, 'it was asked again');
    t.true(tookMs >= 1_000, `it took ${tookMs} ms`);
  });

  test(`without --wait, HTTP ${away} is reported at once`, async (t) => {
    const { url, asked } = await serve(t, answer(away, { detail: 'no upstream' }));
    t.like(await status(url), { code: 2, out: '', err: `error: no upstream (HTTP ${away})\n` });
    t.is(asked(), 1);
  });
}

test('--wait tolerates a connection that ends without an answer', async (t) => {
  const hangUp: RequestListener = (request) => void request.socket.destroy();
  const { url } = await serve(t, hangUp, answer(200, inForce));
  t.like(await status(url, '--wait'), { code: 0, out: reported });
});

test('--wait gives up at once on a permanent refusal, and on a defect', async (t) => {
  for (const refused of [401, 403, 404, 500]) {
    const { url, asked } = await serve(t, answer(refused, { detail: 'no' }));
    const { code, err } = await status(url, '--wait');
    t.is(code, 2);
    t.regex(err, new RegExp(`^error: no.* \\(HTTP ${refused}\\)$`, 'm'));
    t.is(asked(), 1);
  }
});

test('--wait prints what it waits for while a proxy answers in place of the control plane', async (t) => {
  const { url } = await serve(t, answer(503, ''));
  const answered = /^waiting: for an answer: the admin API at \S+ answers HTTP 503 \(\d+ s\)$/m;
  const args = ['--wait', '--timeout', '3s'];
  const { code, err } = await statusUntil((run) => answered.test(run.err), url, ...args);
  t.is(code, 2);
  t.regex(err, answered);
});

test('a page that is not an answer of a control plane is reported as such', async (t) => {
  const { url } = await serve(t, answer(200, '<h1>Back soon</h1>'));
  const run = await status(url);
  t.is(run.code, 2);
  t.regex(run.err, /the server that answers is not a control plane \(HTTP 200, no JSON\)/);
});
