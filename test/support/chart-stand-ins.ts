// kubectl, helm and ratelane for a release of the chart on this machine, as commands in a folder for the PATH: they
// have its objects, and run commands as in its pods. Secrets are created as files.
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ChartRelease } from './chart-release.ts';
import { programCommand, programEnvironment } from './programs.ts';
import type { Manifest, Secrets } from './rendered-chart.ts';

export interface CommandEnd {
  readonly code: number | string;
  readonly output: string;
}

export interface StandIns {
  /** Without a release they only create Secrets. */
  use(release: ChartRelease): void;
  /** Runs a command line in the folder. */
  run(command: string, timeoutMs: number): Promise<CommandEnd>;
  /** For a command line that the caller starts in the folder. */
  readonly environment: NodeJS.ProcessEnv;
  /** The created Secrets. */
  secrets(): Secrets;
}

export function createStandIns(folder: string): StandIns {
  const [bin, pods, made] = ['bin', 'pods', 'secrets'].map((each) => join(folder, `.${each}`)) as [
    string,
    string,
    string,
  ];
  for (const each of [bin, pods, made]) mkdirSync(each);
  const environment = {
    ...programEnvironment,
    PATH: `${bin}:${process.env['PATH']}`,
    HOME: folder,
  };
  const write = (name: string, ...lines: readonly string[]) => {
    writeFileSync(join(bin, name), `#!/bin/sh\nset -eu\n${lines.join('\n')}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  write(
    'ratelane',
    'program=$1',
    'shift',
    'case $program in',
    ...(['control-plane', 'worker', 'client'] as const).map(
      (name) => `  ${name}) exec ${toShell(programCommand(name))} "$@" ;;`,
    ),
    '  *) exit 2 ;;',
    'esac',
  );
  writeKubectl('');

  function writeKubectl(tokenSecret: string): void {
    write(
      'kubectl',
      '[ "$1 $2" = "-n limits" ]',
      'what=$3',
      'shift 3',
      `pod() { . '${pods}'/"\${1#deployment/}"; }`,
      'case $what in',
      '  rollout) pod "$2" ;;',
      '  exec) if [ "$1" = -i ]; then shift; fi; pod "$1"; shift 2; exec "$@" ;;',
      `  get) [ "$1 $2" = "secret ${tokenSecret}" ] ;;`,
      '  create)',
      '    [ "$1 $2" = "secret generic" ]',
      `    secret='${made}'/$3`,
      '    mkdir "$secret"',
      '    shift 3',
      '    for part in "$@"; do',
      '      pair=$(printf %s "$part" | sed "s/--from-[a-z]*=//")',
      '      key=$(printf %s "$pair" | cut -d= -f1)',
      '      value=$(printf %s "$pair" | cut -d= -f2-)',
      '      case $part in',
      '        --from-file=*) cp "$value" "$secret/$key" ;;',
      '        --from-literal=*) printf %s "$value" > "$secret/$key" ;;',
      '        *) exit 2 ;;',
      '      esac',
      '    done ;;',
      '  *) exit 2 ;;',
      'esac',
    );
  }

  return {
    environment,
    use(release) {
      const exports = (of: Readonly<Record<string, string>>) =>
        Object.entries(of).map(([key, value]) => `export ${key}='${value}'`);
      for (const { kind, metadata, spec } of release.manifests) {
        if (kind !== 'Deployment') continue;
        const set = exports(release.environmentOf(spec.template.spec.containers[0]));
        writeFileSync(join(pods, metadata.name), set.join('\n'));
      }
      const plane = release.find('Deployment', `${release.name}-control-plane`).spec.template.spec;
      writeKubectl(plane.volumes.find(({ name }: Manifest) => name === 'peers').secret.secretName);
      const { spec } = release.find('Pod', `${release.name}-test`);
      const tests = spec.containers.map((container: Manifest) => {
        const set = exports(release.environmentOf(container)).map((each) => `${each}; `);
        const words = [...(container.command ?? ['ratelane']), ...container.args];
        const args = words.map((each: string) => `'${release.install(each)}'`);
        return `( ${set.join('')}${args.join(' ')} )`;
      });
      write(
        'helm',
        '[ "$1 $2" = "-n limits" ]',
        'case $3 in',
        `  test) ${tests.join('\n')} ;;`,
        '  upgrade) test -e "$6/Chart.yaml"; test -e "$8" ;;',
        '  rollback) ;;',
        '  *) exit 2 ;;',
        'esac',
      );
    },
    run(command, timeoutMs) {
      return new Promise((resolve) => {
        const options = { cwd: folder, env: environment, timeout: timeoutMs };
        execFile('sh', ['-c', command], options, (error, stdout, stderr) => {
          const code = error?.code ?? (error ? 'killed' : 0);
          resolve({ code, output: `${stdout}${stderr}` });
        });
      });
    },
    secrets() {
      const read = (secret: string) =>
        readdirSync(join(made, secret)).map((key) => [
          key,
          readFileSync(join(made, secret, key), 'utf8'),
        ]);
      return Object.fromEntries(
        readdirSync(made).map((secret) => [secret, Object.fromEntries(read(secret))]),
      );
    },
  };
}

function toShell(command: readonly string[]): string {
  return command.map((word) => `'${word}'`).join(' ');
}
