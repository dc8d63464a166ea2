import { once } from 'node:events';
import { get } from 'node:http';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { Profile } from 'pprof-format';
import { createTestDebugServer } from '../../test/support/debug-server.ts';
import { eventually } from '../../test/support/eventually.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import type { DebugProviders } from './debug.ts';

async function start(t: ExecutionContext, providers: Partial<DebugProviders> = {}) {
  const log = createRecordedLog();
  const server = createTestDebugServer({ providers, log });
  const address = await server.start();
  t.teardown(() => server.stop(0));
  return { server, address, log, url: `http://${address.text}` };
}

async function read(url: string, method = 'GET') {
  const response = await fetch(url, { method, signal: AbortSignal.timeout(60_000) });
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    body: Buffer.from(await response.arrayBuffer()),
  };
}

test('the root and unknown paths list the pages', async (t) => {
  const { url, log, address } = await start(t);
  t.deepEqual(log.lines, [`notice Listening for debug on '${address.text}'`]);
  const expected = [
    '/debug/pprof/: root of various pprof endpoints. hit for help.',
    '/debug/pprof/heap: heap profiling endpoint',
    '/debug/pprof/profile: CPU profiling endpoint',
    '/debug/pprof/trace: trace endpoint',
    '/rlconfig: print out the currently loaded configuration for debugging',
    '/settings: print out the settings in force, secrets masked',
    '/stats: print out stats',
    '/status: print the state of start, rules, connections and health',
    '/unmatched: print out which descriptors no rule matches, and the nearest rule of each',
    '',
  ].join('\n');
  for (const path of ['/', '/nothing', '/stats/', '/debug/pprof']) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const answer = await read(`${url}${path}`, method);
      t.like(answer, { status: 200, type: 'text/plain; charset=utf-8' });
      t.is(`${answer.body}`, expected);
    }
  }
});

// Proof of migrating.md: `/stats` shows every counter and gauge; `/settings` and `/status` exist
// Proof of SECURITY.md: reads rules, statistics, values of requests, and settings without secrets
test('rules, statistics, settings, status and unmatched traffic are shown as they are at that time', async (t) => {
  let rules: string[] | undefined;
  const stats = new Map([['a.b', 1]]);
  const { url } = await start(t, {
    rules: () => rules,
    stats: () => stats,
    settings: () => ['PORT=8080', 'REDIS_AUTH=*****'],
    status: () => ['store: connected'],
    unmatched: async () => ['domain d: 1 descriptors found no rule'],
  });
  const text = async (path: string) => `${(await read(`${url}${path}`)).body}`;
  t.is(await text('/rlconfig'), '');
  rules = ['d.a: unit=SECOND', 'd.b: unit=MINUTE'];
  t.is(await text('/rlconfig'), 'd.a: unit=SECOND\nd.b: unit=MINUTE\n');
  t.is(await text('/stats'), 'a.b: 1\n');
  stats.set('a.c', 2.5);
  t.is(await text('/stats'), 'a.b: 1\na.c: 2.5\n');
  t.is(await text('/settings'), 'PORT=8080\nREDIS_AUTH=*****\n');
  t.is(await text('/status'), 'store: connected\n');
  t.is(await text('/unmatched'), 'domain d: 1 descriptors found no rule\n');
  t.true((await text('/debug/pprof/')).includes('/debug/pprof/profile'));
});

for (const path of ['/stats', '/rlconfig']) {
  test(`${path} is written piece by piece, to eight readers at once`, async (t) => {
    // Each complete answer has 20 MB: more than the buffers of a connection hold.
    const names = Array.from({ length: 100_000 }, (_, at) => `${'a'.repeat(200)}.${at}`);
    let made = 0;
    let written = 0;
    const writing = <T>(values: Iterable<T>) => ({
      *[Symbol.iterator]() {
        made++;
        for (const value of values) {
          yield value;
          written++;
        }
      },
    });
    const stats = new Map(names.map((name) => [name, 1]));
    const { url } = await start(t, {
      rules: () => writing(names),
      stats: () => Object.assign(new Map(), writing(stats)),
    });
    const { hostname, port } = new URL(url);
    const startOfOne = async () => {
      const socket = connect(Number(port), hostname);
      t.teardown(() => socket.destroy());
      socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
      const [start] = await once(socket, 'data');
      // The rest is left unread.
      socket.pause();
      return { socket, status: `${start}`.slice(9, 12) };
    };
    const readers = await Promise.all(Array.from({ length: 20 }, startOfOne));
    t.is(readers.filter(({ status }) => status === '200').length, 8);
    t.is(readers.filter(({ status }) => status === '503').length, 12);
    t.is(made, 8);
    t.true(written < 8 * names.length, `${written} lines`);
    for (const { socket } of readers) socket.destroy();
    await eventually(
      'others are answered',
      async () => (await read(`${url}${path}`)).status === 200,
    );
  });
}

test('a provider that throws is an Internal Server Error, and the port continues to serve', async (t) => {
  const { url, log } = await start(t, {
    stats() {
      throw new Error('a defect');
    },
  });
  t.is((await read(`${url}/stats`)).status, 500);
  t.true(log.lines.includes('error defect in the debug port: a defect'));
  t.is((await read(`${url}/rlconfig`)).status, 200);
});

// Proof of migrating.md: Profiles are V8's, in pprof's format; there is no execution trace
test('there is no trace, and a sentence names the profile to use instead', async (t) => {
  const { url } = await start(t);
  const answer = await read(`${url}/debug/pprof/trace`);
  t.is(answer.status, 501);
  t.regex(`${answer.body}`, /take a CPU profile/);
});

test('lengths of profiles are bounded', async (t) => {
  const { url } = await start(t);
  for (const seconds of ['0', '121', '-1', '1.5', 'x', '', '1&seconds=2']) {
    const answer = await read(`${url}/debug/pprof/profile?seconds=${seconds}`);
    t.is(answer.status, 400, seconds);
    t.is(`${answer.body}`, 'seconds must be a whole number from 1 to 120\n');
  }
});

test.serial('a CPU profile names the functions that were busy, for pprof tools', async (t) => {
  const { url } = await start(t);
  const profile = read(`${url}/debug/pprof/profile?seconds=6`);
  let isDone = false;
  const busy = setInterval(function burnTime() {
    const endMs = performance.now() + 2;
    while (performance.now() < endMs && !isDone);
  }, 10);
  t.teardown(() => clearInterval(busy));
  const second = await waitForBusy(url);
  t.is((await read(`${url}/stats`)).status, 200, 'others are answered meanwhile');
  const answer = await profile;
  isDone = true;
  t.is(second.status, 409);
  t.is(`${second.body}`, 'another profile is being taken; try again when it has ended\n');
  t.is(answer.status, 200);
  const { types, functions, total } = decode(answer.body);
  t.deepEqual(types, ['samples/count', 'cpu/nanoseconds']);
  t.true(functions.includes('burnTime'));
  t.false(functions.includes('(idle)'));
  t.true(total > 50_000_000 && total < 60_000_000_000, `${total} ns`);
  t.is((await read(`${url}/debug/pprof/profile?seconds=1`)).status, 200);
});

test.serial('a heap profile names the functions that allocated live objects', async (t) => {
  const { url } = await start(t);
  const reads: number[][] = [];
  const profile = read(`${url}/debug/pprof/heap?seconds=6`);
  const growing = setInterval(function growHeap() {
    if (reads.length < 200) reads.push(Array.from({ length: 5000 }, (_, index) => index + 0.5));
  }, 5);
  t.teardown(() => clearInterval(growing));
  const answer = await profile;
  t.is(answer.status, 200);
  const { types, functions, total } = decode(answer.body);
  t.deepEqual(types, ['inuse_objects/count', 'inuse_space/bytes']);
  t.true(functions.includes('growHeap'));
  t.true(total > 100_000, `${total} bytes`);
  t.true(reads.length > 0);
});

test.serial('a reader that disconnects ends its profile', async (t) => {
  const { url } = await start(t);
  const request = get(`${url}/debug/pprof/profile?seconds=120`);
  request.on('error', () => {});
  t.is((await waitForBusy(url)).status, 409);
  request.destroy();
  let status = 409;
  await eventually('its end', async () => {
    ({ status } = await read(`${url}/debug/pprof/heap?seconds=1`));
    return status !== 409;
  });
  t.is(status, 200);
});

/** The first answer that shows that a profile is being taken; each try before takes a second. */
async function waitForBusy(url: string) {
  let answer = await read(`${url}/debug/pprof/heap?seconds=1`);
  for (let attempt = 0; answer.status === 200 && attempt < 5; attempt++) {
    answer = await read(`${url}/debug/pprof/heap?seconds=1`);
  }
  return answer;
}

function decode(bytes: Buffer) {
  const profile = Profile.decode(gunzipSync(bytes));
  const text = (index: number | bigint) => profile.stringTable.strings[Number(index)] ?? '';
  return {
    types: profile.sampleType.map(({ type, unit }) => `${text(type)}/${text(unit)}`),
    functions: profile.function.map(({ name }) => text(name)),
    total: profile.sample.reduce((sum, { value }) => sum + Number(value[1] ?? 0), 0),
  };
}
