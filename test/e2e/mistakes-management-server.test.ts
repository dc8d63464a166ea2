// Mistake 12 of those that people make: a management server that is down, that does not know this
// node, or that sends a resource that is wrong. The real worker, and its whole text.

import test from 'ava';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import type { Owner } from '../support/owner.ts';
import { limitResource, startScriptedAdsServer } from '../support/scripted-ads-server.ts';
import { messages } from '../support/worker-messages.ts';
import { spawnWorkerProcess, type WorkerProcess } from '../support/worker-process.ts';

function start(t: Owner, url: string): Promise<WorkerProcess> {
  return spawnWorkerProcess(t, {
    env: { BACKEND_TYPE: 'memory', CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: url },
    rules: {},
  });
}

const anyTime = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

test.serial('mistake 12: the management server is down', async (t) => {
  const url = `127.0.0.1:${await freePort()}`;
  const worker = await start(t, url);
  const refused = `UNAVAILABLE: No connection established. Last error: Error: connect ECONNREFUSED ${url}`;
  await eventually('it is said', () => messages(worker, 'error').length > 0);
  t.deepEqual(messages(worker, 'error').slice(0, 1), [
    `Could not reach the management server ${url}: ${refused}; next attempt in 3s, ` +
      'there are no rules yet (CONFIG_GRPC_XDS_SERVER_URL says where it is)',
  ]);
  const status = await worker.page('/status');
  t.regex(status, /^waiting for: (?:the counter store, and )?a first good load of the rules$/m);
  t.true(
    status
      .replace(anyTime, '<time>')
      .includes(
        `management server ${url} as node "default", not connected yet, ` +
          `last attempt failed at <time>: ${refused}, nothing received yet`,
      ),
    status,
  );
  t.true(messages(worker, 'error').length <= 2, 'no storm');
});

test.serial('mistake 12: the management server does not know this node', async (t) => {
  const server = await startScriptedAdsServer(t);
  const worker = await start(t, server.url);
  await (await server.stream(0)).request(0);
  const status = await worker.page('/status');
  t.regex(
    status,
    /^waiting for: (?:the counter store, and )?a first good load of the rules$/m,
    'at once',
  );
  t.true(
    status
      .replace(anyTime, '<time>')
      .includes(
        `management server ${server.url} as node "default", connected since <time>, nothing received yet`,
      ),
    status,
  );
  const silence = () =>
    messages(worker, 'warning').filter((text) => text.startsWith('The management server'));
  await eventually('the silence is said', () => silence().length > 0);
  t.deepEqual(silence(), [
    `The management server ${server.url} has sent nothing for node "default": still waiting for ` +
      'rules; if it does not know this node, set CONFIG_GRPC_XDS_NODE_ID to one that it knows',
  ]);
});

test.serial('mistake 12: the management server sends a resource that is wrong', async (t) => {
  const server = await startScriptedAdsServer(t);
  const worker = await start(t, server.url);
  const stream = await server.stream(0);
  stream.send('7', 'a', [limitResource('shop', 'shop', 5), limitResource('mail', 'mail')]);
  const problem =
    "mail: error: descriptors[0].rate_limit.unit: invalid rate limit unit 'UNKNOWN'\n" +
    '    hint: allowed are second, minute, hour, day, week, month and year';
  t.is((await stream.request(1)).errorDetail?.message, problem, 'the server is told');
  await eventually('it is said', () => messages(worker, 'error').length > 0);
  t.deepEqual(messages(worker, 'error'), [
    'Error loading new configuration: ' +
      "mail: descriptors[0].rate_limit.unit: invalid rate limit unit 'UNKNOWN'; " +
      `could not load 1 of 2 resources of version "7" from ${server.url} (1 error): ` +
      'the rules loaded before stay in force',
  ]);
  const status = (await worker.page('/status')).replace(anyTime, '<time>');
  t.true(status.includes(`last refusal: version "7" at <time>\n${problem}`), status);
  t.regex(status, /^rules: in force: 1 of 2 resources of version "7"/m, 'the good one counts');
});
