// A Git repository for a test: a bare one that stands for the remote, and a clone from which others
// push. Served from disk, or over HTTP with a password.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { createTemporaryFolder } from './temporary-folder.ts';

/** Nothing of the person's own configuration. */
export const gitEnvironment = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

export interface GitRepository {
  /** A temporary folder, removed after the test, for this repository and what belongs to the test. */
  readonly folder: string;
  /** The bare repository. */
  readonly path: string;
  readonly url: string;
  /** Commits and pushes: texts by path, undefined deletes. Gives the commit's id. */
  push(files: Readonly<Record<string, string | Buffer | undefined>>, message?: string): string;
  /** Replaces the whole history of the branch by one commit with these files. */
  rewrite(files: Readonly<Record<string, string>>): string;
  /** Runs git in the clone. */
  git(...args: readonly string[]): string;
  /** Runs git in the bare repository. */
  gitAtRemote(...args: readonly string[]): string;
  /** Makes it unreachable, and reachable again. */
  hide(): void;
  show(): void;
}

/** On the branch `main`, with one commit that has no file of rules. */
export function createGitRepository(t: Pick<ExecutionContext, 'teardown'>): GitRepository {
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'remote.git');
  const clone = join(folder, 'clone');
  const run = (cwd: string, args: readonly string[]) =>
    execFileSync('git', args, {
      cwd,
      encoding: 'utf8',
      timeout: 60_000,
      stdio: 'pipe',
      env: {
        ...gitEnvironment,
        GIT_AUTHOR_NAME: 'Ann',
        GIT_AUTHOR_EMAIL: 'ann@example.test',
        GIT_COMMITTER_NAME: 'Ann',
        GIT_COMMITTER_EMAIL: 'ann@example.test',
      },
    }).trim();
  const git = (...args: readonly string[]) => run(clone, args);

  function write(files: Readonly<Record<string, string | Buffer | undefined>>): void {
    for (const [name, text] of Object.entries(files)) {
      const file = join(clone, name);
      mkdirSync(dirname(file), { recursive: true });
      if (text === undefined) rmSync(file);
      else writeFileSync(file, text);
    }
    git('add', '--all');
  }

  run(folder, ['init', '--quiet', '--bare', '--initial-branch=main', path]);
  // Who pushes meanwhile may stand still with the lock; Git itself waits for a tenth of a second.
  run(path, ['config', 'core.filesRefLockTimeout', '20000']);
  run(path, ['config', 'core.packedRefsTimeout', '20000']);
  run(folder, ['init', '--quiet', '--initial-branch=main', clone]);
  git('remote', 'add', 'origin', path);
  git('commit', '--quiet', '--allow-empty', '--message=begin');
  git('push', '--quiet', 'origin', 'main');
  return {
    folder,
    path,
    url: `file://${path}`,
    git,
    gitAtRemote: (...args) => run(path, args),
    push(files, message = 'change') {
      git('pull', '--quiet', '--rebase', 'origin', 'main');
      write(files);
      git('commit', '--quiet', `--message=${message}`);
      git('push', '--quiet', 'origin', 'main');
      return git('rev-parse', 'HEAD');
    },
    rewrite(files) {
      git('checkout', '--quiet', '--orphan', 'rewritten');
      git('rm', '-r', '-f', '--quiet', '--ignore-unmatch', '.');
      write(files);
      git('commit', '--quiet', '--allow-empty', '--message=rewritten');
      git('branch', '--quiet', '--force', 'main');
      git('checkout', '--quiet', 'main');
      git('branch', '--quiet', '-D', 'rewritten');
      git('push', '--quiet', '--force', 'origin', 'main');
      return git('rev-parse', 'HEAD');
    },
    hide: () => renameSync(path, `${path}.hidden`),
    show: () => {
      if (existsSync(`${path}.hidden`)) renameSync(`${path}.hidden`, path);
    },
  };
}

export interface HttpAccess {
  readonly username: string;
  /** May be changed while it is served. */
  password: string;
}

/** Serves the repository over HTTP on loopback until the test ends; gives the URL without a name or a
 * password. `slow` accepts connections and never answers. */
export async function serveOverHttp(
  t: ExecutionContext,
  repository: GitRepository,
  access: HttpAccess | 'slow',
): Promise<string> {
  repository.gitAtRemote('config', 'http.receivepack', 'true');
  const server = createServer((request, response) => {
    if (access === 'slow') return;
    const { username, password } = access;
    const wanted = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    if (request.headers.authorization === wanted) runBackend(repository.folder, request, response);
    else response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/remote.git`;
}

function runBackend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const backend = spawn('git', ['http-backend'], {
    env: {
      ...gitEnvironment,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REMOTE_USER: 'test',
      REQUEST_METHOD: request.method,
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'],
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'],
      GIT_PROTOCOL: request.headers['git-protocol']?.toString(),
    },
  });
  request.pipe(backend.stdin);
  const chunks: Buffer[] = [];
  backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  backend.on('close', () => {
    const output = Buffer.concat(chunks);
    const end = output.indexOf('\r\n\r\n');
    const headers = output.subarray(0, end).toString().split('\r\n');
    const pairs = headers.map((line) => line.split(': ', 2) as [string, string]);
    const status = Number(pairs.find(([name]) => name === 'Status')?.[1].slice(0, 3) ?? 200);
    response.writeHead(status, Object.fromEntries(pairs)).end(output.subarray(end + 4));
  });
}
