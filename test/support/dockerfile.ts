// Follows a Dockerfile without a daemon: runs its steps in order, in folders that represent the file systems of its
// stages. For files whose RUN steps use relative paths.
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

/** A container of the last stage. */
export interface FollowedImage {
  /** The folder that represents `/`. */
  readonly root: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly user: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
}

export interface FollowOptions {
  readonly file: string;
  /** The context: the source of COPY. */
  readonly context: string;
  /** Receives one folder for each stage. */
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Time limit of one step. */
  readonly timeoutMs: number;
}

type Stage = { -readonly [Key in keyof FollowedImage]: FollowedImage[Key] } & { workdir: string };

/** Skips steps that install system packages: the machine's own are used. */
export async function followDockerfile(options: FollowOptions): Promise<FollowedImage> {
  const { context, folder, environment, timeoutMs } = options;
  const stages = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const { name, rest } of readInstructions(await readFile(options.file, 'utf8'))) {
    if (name === 'FROM') {
      const [base = '', , as = ''] = rest.split(/\s+/);
      const from = stages.get(base);
      const root = join(folder, as);
      await mkdir(root, { recursive: true });
      if (from !== undefined) await linkTree(from.root, root);
      stage = { ...(from ?? emptyStage), root };
      stages.set(as, stage);
      continue;
    }
    if (stage === undefined) throw new Error(`${name} before FROM`);
    const path = (inImage: string) =>
      join(stage?.root ?? '', inImage.startsWith('/') ? '' : (stage?.workdir ?? ''), inImage);
    switch (name) {
      case 'WORKDIR':
        stage.workdir = rest;
        await mkdir(path(rest), { recursive: true });
        break;
      case 'COPY': {
        const from = /^--from=(\S+)\s+/.exec(rest);
        const words = rest.slice(from?.[0].length ?? 0).split(/\s+/);
        const target = words.pop() ?? '';
        for (const word of words) {
          const source = from
            ? join(stages.get(from[1] ?? '')?.root ?? '', word)
            : join(context, word);
          const into = target.endsWith('/') ? join(path(target), basename(word)) : path(target);
          await mkdir(dirname(into), { recursive: true });
          if (from) await linkTree(source, into);
          else await cp(source, into, { recursive: true, verbatimSymlinks: true });
        }
        break;
      }
      case 'RUN':
        if (rest.startsWith('apt-get ')) break;
        await runStep(rest, { cwd: path('.'), env: environment, timeout: timeoutMs });
        break;
      case 'ENV': {
        const [key = '', value = ''] = rest.split(/=(.*)/s);
        stage.environment = { ...stage.environment, [key]: value };
        break;
      }
      case 'LABEL': {
        const pairs = [...rest.matchAll(/([\w.]+)="([^"]*)"/g)];
        const { environment: known } = stage;
        const labels = pairs.map(([, key = '', value = '']) => [key, expand(value, known)]);
        stage.labels = { ...stage.labels, ...Object.fromEntries(labels) };
        break;
      }
      case 'ARG':
        stage.environment = { ...stage.environment, ...Object.fromEntries([rest.split('=')]) };
        break;
      case 'USER':
        stage.user = rest;
        break;
      case 'ENTRYPOINT':
        stage.entrypoint = JSON.parse(rest);
        break;
      case 'CMD':
        stage.command = JSON.parse(rest);
        break;
      case 'HEALTHCHECK':
        stage.healthCheck = JSON.parse(rest.slice(rest.indexOf('[')));
        break;
      case 'EXPOSE':
      case 'VOLUME':
        break;
      default:
        throw new Error(`an instruction that is not known here: ${name}`);
    }
  }
  if (stage === undefined) throw new Error('no FROM');
  return stage;
}

const emptyStage = {
  labels: {},
  user: 'root',
  environment: {},
  entrypoint: [],
  command: [],
  healthCheck: [],
  workdir: '/',
};

/** Between two of our folders: thousands of files, which are no longer written to. */
async function linkTree(source: string, target: string): Promise<void> {
  await promisify(execFile)('cp', ['-RPlT', source, target]);
}

function expand(text: string, environment: Stage['environment']): string {
  return text.replace(/\$\{(\w+)\}/g, (_all, name: string) => environment[name] ?? '');
}

function readInstructions(text: string): { name: string; rest: string }[] {
  return text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [name = '', ...words] = line.trim().split(' ');
      return { name, rest: words.join(' ').trim() };
    });
}

function runStep(
  command: string,
  options: { cwd: string; env: NodeJS.ProcessEnv; timeout: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile('sh', ['-c', command], options, (error, stdout, stderr) => {
      if (error === null) resolve();
      else reject(new Error(`RUN ${command}: ${error.message}\n${stdout}${stderr}`));
    });
  });
}
