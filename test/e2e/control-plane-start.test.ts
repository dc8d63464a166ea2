// Tests how the control plane starts and ends: errors at the start, a store that does not answer, and TLS with
// certificates on both sides.
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import {
  caCertificate,
  clientCertificate,
  serverCertificate,
} from '../contract/grpc-transport-certificates.ts';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createGitRepository, gitEnvironment, serveOverHttp } from '../support/git-repository.ts';
import { listenFor } from '../support/listen.ts';
import { sourceCommand } from '../support/programs.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

test.serial('wrong settings, a port in use and missing files end the start', async (t) => {
  const rules = createRulesFolder(t);
  const port = await listenFor(t, createServer());
  const cases: [readonly string[], RegExp][] = [
    [[], /no rules are named: give --config-dir/],
    [
      ['--config-dir', rules.path, '--admin-tokens-file', '/nonexistent'],
      /the tokens file cannot be read: .*\/nonexistent/,
    ],
  ];
  for (const [flags, message] of cases) {
    const plane = await createControlPlaneProcess(t, { flags });
    plane.begin();
    t.is(await plane.ended(), 1, flags.join(' '));
    t.regex(plane.output(), message);
    t.notRegex(plane.output(), /\n {4}at /, 'no stack for a mistake of a user');
  }
  const plane = await createControlPlaneProcess(t, {
    flags: ['--config-dir', rules.path],
    addresses: ['--admin-address', `127.0.0.1:${port}`, '--xds-address', '127.0.0.1:0'],
  });
  plane.begin();
  t.is(await plane.ended(), 1);
  t.regex(
    plane.output(),
    new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}: .*EADDRINUSE.*--admin-address`),
  );
});

test.serial('a hanging repository delays neither the last good rules nor a stop', async (t) => {
  const repository = createGitRepository(t, { 'shop.yaml': ruleText('shop', 1) });
  const access = { username: 'ann', password: 'a password' };
  const url = await serveOverHttp(t, repository, access);
  const proxy = await startTcpProxy(t, Number(new URL(url).port));
  const proxied = new URL(url);
  proxied.port = String(proxy.port);
  const passwordFile = join(repository.folder, 'password');
  writeFileSync(passwordFile, `${access.password}\n`);
  const credentials = ['--git-username', access.username, '--git-password-file', passwordFile];
  const plane = await createControlPlaneProcess(t, {
    flags: ['--git', proxied.href, ...credentials],
    env: gitEnvironment as Record<string, string>,
  });
  await plane.start();
  t.is((await plane.run('status', '--min-workers', '0')).exitCode, 0);
  t.is(await plane.end('SIGKILL'), 'SIGKILL');

  proxy.inject({ kind: 'stall' });
  await plane.start();
  const { body } = await plane.fetch('/status');
  t.like(body, {
    verdict: 'pending',
    stale: { reason: 'store_unreachable' },
    inForce: { limits: 1 },
  });
  t.is(await plane.end('SIGTERM'), 0);

  plane.begin();
  await eventually('the admin port is open and reports what is missing', async () => {
    const answer = await plane.fetch('/healthcheck').catch(() => undefined);
    if (answer?.status !== 503) return false;
    // Without the store's location: any caller can read the answer.
    t.is(answer.body.detail, 'the store of the rules');
    return true;
  });
  t.is(await plane.end('SIGTERM'), 0);
  t.false(plane.output().includes(access.password));
});

/** The first module loaded after the signal handlers, and later ones. */
for (const [signal, moment] of [
  ['SIGTERM', '/shared/clock.ts'],
  ['SIGINT', '/command/run-command.ts'],
  ['SIGHUP', '/control-plane/server/server.ts'],
] as const) {
  test.serial(`${signal} while ${moment} is being read ends serve with exit code 0`, async (t) => {
    const rules = createRulesFolder(t);
    // Sends itself the signal at exactly that moment.
    const hook = `import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, next) {
    if (url.endsWith('${moment}')) process.kill(process.pid, '${signal}');
    return next(url, context);
  },
});`;
    const preload = `--import=data:text/javascript,${encodeURIComponent(hook)}`;
    const plane = await createControlPlaneProcess(t, {
      flags: ['--config-dir', rules.path],
      env: { NODE_OPTIONS: preload },
      program: sourceCommand('control-plane'),
    });
    plane.begin();
    t.is(await plane.ended(), 0, plane.output());
  });
}

test.serial(
  'the YAML library is loaded before workers are served: loading it later would block all streams',
  async (t) => {
    const rules = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 1) });
    const hook = `import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, next) {
    if (url.includes('/node_modules/yaml/')) process.stderr.write('yaml is loaded\\n');
    return next(url, context);
  },
});`;
    const plane = await createControlPlaneProcess(t, {
      flags: ['--config-dir', rules.path],
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` },
      program: sourceCommand('control-plane'),
    });
    await plane.start();
    t.regex(plane.output(), /yaml is loaded/);
  },
);

for (const words of ['Admin API on', 'Workers are served']) {
  test.serial(`SIGTERM at "${words}" ends serve with exit code 0`, async (t) => {
    const rules = createRulesFolder(t);
    const plane = await createControlPlaneProcess(t, { flags: ['--config-dir', rules.path] });
    plane.begin();
    await eventually('it has come so far', () => plane.output().includes(words));
    t.is(await plane.end('SIGTERM'), 0, plane.output());
  });
}

test.serial('half-written files of a killed process are removed at the start', async (t) => {
  const rules = createRulesFolder(t, { 'deep/shop.yaml': ruleText('shop', 1) });
  const staged = `.shop.yaml.${randomUUID()}.tmp`;
  const [old, young] = [join('deep', staged), `.other.yaml.${randomUUID()}.tmp`];
  for (const name of [old, young]) rules.write(name, 'half');
  utimesSync(join(rules.path, old), 1, 1);
  const state = createRulesFolder(t);
  state.write(`.last-good.revision.json.${randomUUID()}.tmp`, 'half');
  const [leftOver = ''] = readdirSync(state.path);
  const plane = await createControlPlaneProcess(t, {
    flags: ['--config-dir', rules.path],
    stateDirectory: state.path,
  });
  await plane.start();
  t.false(existsSync(join(rules.path, old)));
  t.true(existsSync(join(rules.path, young)), 'another control plane may be writing it');
  t.false(existsSync(join(state.path, leftOver)));
});

test.serial('both ports use TLS, with client certificates', async (t) => {
  const rules = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 1) });
  const files = createRulesFolder(t, {
    'ca.pem': caCertificate,
    'server.pem': serverCertificate.cert,
  });
  files.write('server.key', serverCertificate.key);
  files.write('client.pem', clientCertificate.cert);
  files.write('client.key', clientCertificate.key);
  const at = (name: string) => join(files.path, name);
  const tls = (port: string) => [
    ...[`--${port}-tls-cert`, at('server.pem'), `--${port}-tls-key`, at('server.key')],
    ...[`--${port}-tls-client-ca`, at('ca.pem')],
  ];
  const plane = await createControlPlaneProcess(t, {
    flags: ['--config-dir', rules.path, ...tls('xds'), ...tls('admin')],
  });
  plane.begin();
  await eventually('it serves', () => plane.output().includes('Workers are served'));
  const url = ['--admin-url', plane.adminUrl.replace('http:', 'https:')];
  const trust = ['--ca', at('ca.pem')];
  const own = ['--cert', at('client.pem'), '--key', at('client.key')];
  const noWorkers = ['--min-workers', '0'];
  const status = await plane.runElsewhere('status', ...url, ...noWorkers, ...trust, ...own);
  t.is(status.exitCode, 0, status.stderr);
  t.is((await plane.runElsewhere('status', ...url, ...trust)).exitCode, 2, 'no certificate');
  t.is((await plane.runElsewhere('status', ...url, ...own)).exitCode, 2, 'not trusted');
  const watch = ['watch', '--xds', plane.xdsAddress, '--once', '--tls', ...trust];
  const watched = await plane.runElsewhere(...watch, ...own);
  t.is(watched.exitCode, 0, watched.stderr);
  t.is((await plane.runElsewhere(...watch)).exitCode, 2, 'no certificate');
});
