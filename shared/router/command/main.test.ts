import { type ChildProcess, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const main = fileURLToPath(new URL('main.ts', import.meta.url));
/** Requests still under way after this time since the signal are cut off; a little less, since two clocks measure
 * it. */
const graceMs = 4_900;
const sample = fileURLToPath(new URL('../sample', import.meta.url));

function start(args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const { ENDPOINTS_PREFIX: _prefix, ...rest } = process.env;
  return spawn(process.execPath, [main, ...args], { env: { ...rest, ...env } });
}

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const child = start(args, env);
  let [out, err] = ['', ''];
  child.stdout?.on('data', (data) => {
    out += data;
  });
  child.stderr?.on('data', (data) => {
    err += data;
  });
  const [code] = await once(child, 'close');
  return { code, out, err };
}

async function readUrl(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the command has no output');
  const [line] = await once(createInterface(child.stdout), 'line');
  return String(line).replace('listening on ', '');
}

test('serve, which it does without a command, listens where it is configured, and SIGTERM ends it with 0', async (t) => {
  const child = start(['--prefix', sample, '--host', '127.0.0.1:0']);
  const url = await readUrl(child);
  const created = await fetch(`${url}/widgets`, {
    method: 'POST',
    body: new URLSearchParams({ name: 'bolt', size: '3' }),
  });
  t.is(created.status, 201);
  t.deepEqual(await created.json(), { id: 'w-1', name: 'bolt', size: 3 });
  const location = created.headers.get('location');
  t.is((await fetch(`${url}${location}`, { method: 'DELETE' })).status, 204);
  t.is((await fetch(`${url}${location}`)).status, 404);
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  t.deepEqual(await ended, [0, null]);
});

test('serve --require-guards does not start while a class has no guard', async (t) => {
  const { code, err } = await run(['serve', '--prefix', sample, '--require-guards']);
  t.is(code, 1);
  t.regex(
    err,
    /^\S+sample\/widgets\.ts: widgets:Default has no guard for DELETE, GET, POST, PUT; give it one/m,
  );
});

test('SIGTERM lets a request under way finish, and refuses new ones', async (t) => {
  for (let attempt = 1; ; attempt++) {
    const { isRefused, outcome, tookMs, exit } = await finishAfterSigterm();
    t.true(isRefused);
    t.deepEqual(exit, [0, null]);
    // A busy machine may delay a request until it is cut off, which is not what this test checks.
    if (outcome instanceof Error && tookMs > graceMs && attempt < 5) continue;
    t.is(outcome, 201);
    return;
  }
});

/** The outcome of a request that is under way at the signal: its status, or how it failed. */
async function finishAfterSigterm() {
  const child = start(['serve', '--prefix', sample, '--host', '127.0.0.1:0']);
  const exited = once(child, 'exit');
  const { port } = new URL(await readUrl(child));
  const headers = { 'content-type': 'application/json', expect: '100-continue' };
  const sent = request({ port, host: '127.0.0.1', path: '/widgets', method: 'POST', headers });
  await once(sent, 'continue');
  const answered = once(sent, 'response').then(
    ([answer]) => answer.resume().statusCode as number,
    (error: Error) => error,
  );
  const beganMs = performance.now();
  child.kill('SIGTERM');
  const isRefused = await isRefusedSoon(Number(port));
  sent.end('{"name":"late"}');
  const outcome = await answered;
  const tookMs = performance.now() - beganMs;
  return { isRefused, outcome, tookMs, exit: await exited };
}

async function isRefusedSoon(port: number): Promise<boolean> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await setTimeout(20)) {
    const socket = connect(port, '127.0.0.1');
    const [error] = await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(
      (refused) => [refused],
    );
    socket.destroy();
    if (error instanceof Error) return true;
  }
  return false;
}

test('routes prints what would be served, found through the environment', async (t) => {
  const { code, out } = await run(['routes'], { ENDPOINTS_PREFIX: sample });
  t.is(code, 0);
  t.deepEqual(out.split('\n'), [
    'GET     /               :Default.GET',
    'GET     /status         :Status.GET',
    'DELETE  /widgets/:id    widgets:Default.DELETE',
    'GET     /widgets[/:id]  widgets:Default.GET',
    'POST    /widgets        widgets:Default.POST',
    'PUT     /widgets/:id    widgets:Default.PUT',
    '',
  ]);
});

test('serve reports the number of methods, and both commands report that there is no method', async (t) => {
  t.is(await noteOfServe(sample), 'methods served: 6');
  const empty = await mkdtemp(join(tmpdir(), 'controllers-'));
  const { code, out, err } = await run(['routes', '--prefix', empty]);
  t.deepEqual([code, out], [0, '']);
  t.regex(err, /^warning: nothing is served, .*: there is no module\n$/);
  await rm(empty, { recursive: true });
});

/** Its first line on standard error. */
async function noteOfServe(prefix: string): Promise<string> {
  const child = start(['serve', '--prefix', prefix, '--host', '127.0.0.1:0']);
  const exited = once(child, 'exit');
  if (child.stderr === null) throw new Error('the command has no standard error');
  const [line] = await once(createInterface(child.stderr), 'line');
  child.kill('SIGTERM');
  await exited;
  return String(line);
}

test('openapi prints the document', async (t) => {
  const args = ['openapi', '--prefix', sample, '--title', 'Sample', '--api-version', '1.0.0'];
  const { code, out } = await run(args);
  t.is(code, 0);
  t.like(JSON.parse(out), { openapi: '3.1.1', info: { title: 'Sample', version: '1.0.0' } });
});

test('an unknown command and a wrong address end with exit code 2', async (t) => {
  t.is((await run(['srve'])).code, 2);
  for (const [host, reason] of [
    ['8000', 'the port is missing'],
    ['localhost:65536', 'the port is not a number from 0 to 65535'],
  ] as const) {
    const { code, err } = await run(['serve', '--host', host]);
    t.is(code, 2);
    t.true(err.includes(`It is not host:port: ${reason}.`), err);
  }
});

test('a failed start is reported in one line, with exit code 1', async (t) => {
  t.deepEqual(await run(['serve', '--prefix', './none']), {
    code: 1,
    out: '',
    err: 'there is no folder of controllers at ./none; name another prefix\n',
  });
  const { code, err } = await run(['serve', '--prefix', sample, '--host', '192.0.2.1:1']);
  t.is(code, 1);
  t.regex(err, /^cannot listen on 192.0.2.1:1: .*EADDRNOTAVAIL.*\n$/);
});

test('--help names the options and their defaults', async (t) => {
  const { code, out } = await run(['serve', '--help']);
  t.is(code, 0);
  for (const text of [
    '--prefix <path>',
    'ENDPOINTS_PREFIX',
    '--host <host:port>',
    'localhost:8000',
  ]) {
    t.true(out.includes(text), text);
  }
});

test('serve --watch restarts when a controller changes, and shows where an error was thrown', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'watched-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'controllers'));
  await symlink(join(import.meta.dirname, '..', '..', '..', 'shared'), join(folder, '.shared'));
  const write = (body: string) =>
    writeFile(
      join(folder, 'controllers', 'index.ts'),
      `import { Controller } from '../.shared/router/index.ts';
export class Default extends Controller {
  GET() {
    ${body}
  }
}
`,
    );
  await write("return 'before';");
  await mkdir(join(folder, 'services'));
  const service = join(folder, 'services', 'words.ts');
  await writeFile(service, '');
  const args = [main, 'serve', '--watch', '--host', '127.0.0.1:0'];
  const child = spawn(process.execPath, args, { cwd: folder });
  t.teardown(() => child.kill('SIGTERM'));
  const lines = createInterface(child.stdout);
  const nextUrl = async (): Promise<string> => {
    for await (const [line] of on(lines, 'line')) {
      const [, url] = /^listening on (.*)/.exec(String(line)) ?? [];
      if (url !== undefined) return url;
    }
    return '';
  };
  t.is(await (await fetch(await nextUrl())).text(), '"before"');
  const again = nextUrl();
  await write("throw new Error('a <b> is wrong');");
  const url = await again;
  const page = await fetch(url);
  t.is(page.status, 500);
  const text = await page.text();
  t.true(text.includes('a <b> is wrong'));
  t.regex(text, />\s+4 \|\s+throw new Error/);
  const added = nextUrl();
  await mkdir(join(folder, 'controllers', 'more'));
  await writeFile(
    join(folder, 'controllers', 'more', 'index.ts'),
    "export { Default } from '../index.ts';",
  );
  t.is((await fetch(`${await added}/more`)).status, 500, 'a new folder is seen');
  const changed = nextUrl();
  await writeFile(service, 'export {};');
  t.not(await changed, '', 'so is a module of a folder beside');
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  t.deepEqual(await ended, [0, null]);
});
