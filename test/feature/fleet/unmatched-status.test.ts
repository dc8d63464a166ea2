// Traffic that matches no rule, from a worker's decisions to its debug pages and to `status`.
import { createServer, type RequestListener } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { listenFor } from '../../support/listen.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const rules = `domain: d
descriptors:
  - {key: customer, rate_limit: {unit: year, requests_per_unit: 5}}
`;

async function serve(t: ExecutionContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  return `127.0.0.1:${await listenFor(t, server)}`;
}

/** With a control plane for which everything is well. */
async function status(t: ExecutionContext, ...args: string[]) {
  const answer = { verdict: 'pending', text: 'as it is', newest: null, disagreements: [] };
  const admin = await serve(t, (_request, response) => response.end(JSON.stringify(answer)));
  return runInProcess(['status', '--admin-url', `http://${admin}`, ...args]);
}

test('status shows what the worker at a debug port finds no rule for', async (t) => {
  const worker = await startWorker(t, { env: { BACKEND_TYPE: 'memory' }, rules });
  const { debug } = await worker.started;
  t.regex(await worker.page('/status'), /^unmatched: no descriptor since the rules came$/m);
  await worker.decide('custmer=ada');
  await worker.decide('customer=ada');
  t.regex(await worker.page('/status'), /^unmatched: 1 of domain d; \/unmatched says why$/m);
  const { code, out, err } = await status(t, '--worker-debug', debug.text);
  t.is(code, 3);
  t.is(err, '');
  const plain = out.replace(/at \d{4}-\S+Z/, 'at T').replace(/\S*(?=rules.yaml)/, '');
  t.is(
    plain,
    `as it is
worker ${debug.text}:
  domain d: 1 descriptor since the start found no rule
    (custmer): sampled 1 time, last at T
      (custmer=ada)
        no rule has the key 'custmer'; did you mean 'customer'?
        nearest rule: rules.yaml:3:5
`,
  );
  const json = JSON.parse(
    (await status(t, '--json', '--worker-debug', `http://${debug.text}/`)).out,
  );
  t.is(json.unmatched[0].worker, debug.text);
  t.is(json.unmatched[0].lines[0], 'domain d: 1 descriptor since the start found no rule');
});

test('a worker that cannot be asked is a warning, and the answer stays what it is', async (t) => {
  const gone = await status(t, '--worker-debug', '127.0.0.1:1');
  t.is(gone.code, 3);
  t.is(gone.out, 'as it is\n');
  t.regex(gone.err, /^warning: worker 127\.0\.0\.1:1: \S.*\n$/);
  const large = await serve(t, (_request, response) => response.end('x'.repeat(5_000_000)));
  t.regex((await status(t, '--worker-debug', large)).err, /the page is larger than 4194304 bytes/);
  const other = await serve(t, (_request, response) => response.end('/debug/pprof/: root\n'));
  t.regex((await status(t, '--worker-debug', other)).err, /there is no page \/unmatched/);
  const hostile = await serve(t, (_request, response) => response.end('a\u001b[2Jb\n'));
  t.false((await status(t, '--worker-debug', hostile)).out.includes('\u001b'));
  t.is((await status(t, '--worker-debug', 'ftp://x')).code, 2);
  t.is((await status(t, '--worker-debug', 'http://a:b@x')).code, 2);
});
