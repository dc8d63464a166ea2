// Tests the compositions in compose/: each overlay on the base, read by Docker Compose's own library, and their
// settings compared with what the programs accept.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parseControlPlaneSettings } from '../../../control-plane/server/settings.ts';
import { parseWorkerSettings } from '../../../worker/settings.ts';
import { runTool, testWith } from '../../support/installed-tool.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const folder = join(import.meta.dirname, '..', '..', '..', 'compose');
const base = 'compose.yaml';
const overlays = readdirSync(folder).filter((name) => name.endsWith('.yaml') && name !== base);
const compositions = [
  [],
  ...overlays.map((overlay) => [overlay]),
  // The observability overlay does not depend on the store.
  ...overlays.map((overlay) => [overlay, 'observability.yaml']),
].filter(([first, second]) => second === undefined || first !== second);

interface Service {
  readonly image?: string;
  readonly build?: unknown;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  /** Or a list of NAME=value. */
  readonly environment?: Readonly<Record<string, string>> | readonly string[];
  readonly volumes?: readonly { readonly type: string; readonly source: string }[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}

interface Composition {
  readonly services: Readonly<Record<string, Service>>;
}

for (const files of compositions) {
  const title = [base, ...files].join(' with ');
  testWith(test, 'compose-spec')(
    `${title} is a composition of programs that can start`,
    async (t) => {
      const { services } = await readComposition(files);
      for (const name of ['worker-1', 'worker-2']) {
        const environment = environmentOf(services[name]);
        const result = parseWorkerSettings(environment);
        t.deepEqual(result.ok ? [] : result.problems, [], name);
        t.deepEqual(result.warnings, [], name);
      }
      const plane = services['control-plane'];
      t.deepEqual(plane?.command, ['control-plane', 'serve']);
      const settings = parseControlPlaneSettings(environmentOf(plane));
      t.deepEqual(settings.ok ? [] : settings.problems, []);
      t.deepEqual(
        settings.warnings.filter((warning) => !warning.startsWith('anyone who can reach')),
        [],
        'but that the network of the composition is trusted, nothing is amiss',
      );
      for (const [name, service] of Object.entries(services)) {
        t.true(service.image !== undefined || service.build !== undefined, `${name} has an image`);
        for (const needed of Object.keys(service.depends_on ?? {})) {
          t.true(needed in services, `${name} waits for ${needed}`);
        }
        for (const { type, source } of service.volumes ?? []) {
          if (type === 'bind') t.true(existsSync(source), `${source} is there`);
        }
      }
    },
  );
}

testWith(test, 'compose-spec')(
  'the certificates of tls.yaml are made once, and are good',
  async (t) => {
    const { services } = await readComposition(['tls.yaml']);
    const [shell = '', ...args] = services['certificates']?.entrypoint ?? [];
    const cwd = createTemporaryFolder(t);
    const make = () => execFileSync(shell, args, { cwd, stdio: 'pipe', timeout: 60_000 });
    make();
    for (const name of ['redis', 'control-plane']) {
      const verify = ['verify', '-CAfile', 'ca.pem', '-verify_hostname', name, `${name}.pem`];
      t.is(execFileSync('openssl', verify, { cwd, encoding: 'utf8' }), `${name}.pem: OK\n`);
      execFileSync('openssl', ['pkey', '-in', `${name}.key`, '-noout'], { cwd });
    }
    t.false(existsSync(join(cwd, 'ca.key')), 'no further ones can be made');
    const madeAt = statSync(join(cwd, 'ca.pem')).mtimeMs;
    make();
    t.is(statSync(join(cwd, 'ca.pem')).mtimeMs, madeAt);
  },
);

function environmentOf(service: Service | undefined): Record<string, string> {
  const { environment = {} } = service ?? {};
  if (!Array.isArray(environment)) return { ...(environment as Record<string, string>) };
  return Object.fromEntries(environment.map((item: string) => item.split(/=(.*)/s).slice(0, 2)));
}

async function readComposition(files: readonly string[]): Promise<Composition> {
  const args = ['-format', 'json', base, ...files];
  const { code, output } = await runTool('compose-spec', args, folder);
  if (code !== 0) throw new Error(output);
  return JSON.parse(output);
}
