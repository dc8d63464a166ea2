// Every command of the sections on production and upgrades works: all are run in order, as a reader would paste them.
// kubectl and helm are stand-ins (test/support/chart-stand-ins.ts): the page's Secrets and values reach the programs
// through the chart, and commands in pods reach the programs.
import { spawn } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'yaml';
import { caCertificate, serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { createChartRelease, startPrograms } from '../support/chart-release.ts';
import { createStandIns, type StandIns } from '../support/chart-stand-ins.ts';
import { endWithUs } from '../support/end-with-us.ts';
import { eventually } from '../support/eventually.ts';
import { findFencedBlocks } from '../support/fenced-blocks.ts';
import { freePort } from '../support/free-port.ts';
import { createGitRepository } from '../support/git-repository.ts';
import { testWith } from '../support/installed-tool.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { ruleText } from '../support/rules-folder.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const project = join(import.meta.dirname, '..', '..');
const commandMs = 90_000;
const page = readFileSync(join(project, 'worker/docs/operating.md'), 'utf8');
const [, section = ''] = page.split(/<!-- production:(?:begin|end) -->/);
const blocks = findFencedBlocks(section);
const commands = blocks
  .filter(({ language }) => language === 'sh')
  .flatMap(({ text }) => text.replaceAll('\\\n', ' ').trim().split('\n'));
const onMachines = commands.filter((each) => /^(CONFIG_|ratelane )/.test(each));
const onKubernetes = commands.filter((each) => !onMachines.includes(each));
const redisPassword = 'the-password-of-redis';
/** Nothing accepts notifications there, and nothing waits for them. */
const closedPort = 'http://127.0.0.1:9/';
const makesSecrets = (command: string) => /openssl|printf|create secret/.test(command);

testWith(test, 'chart-check')('the commands of the page work as they stand', async (t) => {
  t.timeout(8 * commandMs);
  const redis = await startRedisServer(t, { args: ['--requirepass', redisPassword] });
  const repository = createGitRepository(t);
  const first = repository.push({ 'shop.yaml': ruleText('shop', 1) });
  repository.push({ 'shop.yaml': ruleText('shop', 2) });
  const folder = createTemporaryFolder(t);
  symlinkSync(join(project, 'compose'), join(folder, 'compose'));
  for (const [name, text] of Object.entries({
    'tls.crt': serverCertificate.cert,
    'tls.key': serverCertificate.key,
    'ca.crt': caCertificate,
    'git-password': 'a password',
    'redis-password': redisPassword,
    'production.yaml': blocks.find(({ language }) => language === 'yaml')?.text ?? '',
  })) {
    writeFileSync(join(folder, name), text);
  }
  const standIns = createStandIns(folder);
  for (const command of onKubernetes.filter(makesSecrets)) await succeeds(t, standIns, command);

  const values = parse(readFileSync(join(folder, 'production.yaml'), 'utf8'));
  values.worker.settings.KVSTORE_URL = redis.url;
  values.controlPlane.git.url = repository.path;
  values.controlPlane.notify.url = closedPort;
  const release = await createChartRelease(
    t,
    { ...values, fullnameOverride: 'ratelane' },
    standIns.secrets(),
  );
  standIns.use(release);
  const ended = await startPrograms(t, release);
  for (const program of ['control-plane', 'worker'] as const) {
    await eventually(
      `${program} is ready`,
      () => release.isPassed(program, 'readinessProbe'),
      commandMs,
    ).catch((error) => t.fail(`${error.message}\n${ended()}`));
  }
  for (const command of onKubernetes.filter((each) => !makesSecrets(each)))
    await succeeds(t, standIns, release.install(command).replace('480771aaa5a7', first));

  const [xds, admin, http, grpc, debug, metrics] = await Promise.all(
    Array.from({ length: 6 }, freePort),
  );
  const substitutions: readonly (readonly [string, string])[] = [
    ['https://git.example/limits.git', repository.path],
    ['/var/lib/ratelane', join(folder, 'state')],
    [' --peers https://b.example:18001', ` --xds-address 0.0.0.0:${xds}`],
    ['0.0.0.0:18001', `0.0.0.0:${admin}`],
    ['a.example:18001', `localhost:${admin}`],
    ['a.example:18000,b.example:18000', `localhost:1,localhost:${xds}`],
    ['redis.example:6379', redis.url],
    ['https://hooks.example/limits', closedPort],
    [
      'CONFIG_TYPE=',
      `PORT=${http} GRPC_PORT=${grpc} DEBUG_PORT=${debug} PULLMETRICS_ADDR=:${metrics} CONFIG_TYPE=`,
    ],
  ];
  t.is(onMachines.length, 3);
  for (const shown of onMachines) {
    const command = substitutions.reduce((text, [a, b]) => text.replaceAll(a, b), shown);
    if (/serve|worker$/.test(shown)) {
      startServer(t, standIns, folder, command);
      continue;
    }
    // The first time that the worker has its rules.
    let output = '';
    await eventually(
      shown,
      async () => {
        const end = await standIns.run(command, commandMs);
        output = end.output;
        return end.code === 0 && output.includes('1 worker');
      },
      commandMs,
    ).catch((error) => t.fail(`${error.message}\n${output}`));
  }
});

async function succeeds(t: ExecutionContext, standIns: StandIns, command: string): Promise<void> {
  const { code, output } = await standIns.run(command, commandMs);
  t.is(code, 0, `${command}\n${output}`);
}

function startServer(t: ExecutionContext, { environment }: StandIns, cwd: string, command: string) {
  const child = spawn('sh', ['-c', command], {
    cwd,
    env: environment,
    stdio: 'ignore',
    detached: true,
  });
  endWithUs(child);
  const closed = new Promise((resolve) => child.once('close', resolve));
  t.teardown(() => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGTERM');
    } catch {
      // All processes of its group have ended.
    }
    return closed;
  });
}
