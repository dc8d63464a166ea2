// A Git repository for a test: a bare one that represents the remote, to which others push. Served from disk, or over
// HTTP with a password. Each Git command costs some processes, so the most frequent operations take one.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { listenFor } from './listen.ts';
import { createTemporaryFolder } from './temporary-folder.ts';

/** Without the user's own configuration. */
export const gitEnvironment = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

const ann = 'Ann <ann@example.test>';
const annEnvironment = {
  ...gitEnvironment,
  GIT_AUTHOR_NAME: 'Ann',
  GIT_AUTHOR_EMAIL: 'ann@example.test',
  GIT_COMMITTER_NAME: 'Ann',
  GIT_COMMITTER_EMAIL: 'ann@example.test',
};
/** Attempts of a push, while others push. */
const mostAttempts = 10;

export type GitRepository = ReturnType<typeof createGitRepository>;

type Files = Readonly<Record<string, string | Buffer | undefined>>;

let template: string | undefined;

/** On the branch `main`, with one commit without rules files, followed by one with `files`. */
export function createGitRepository(t: Pick<ExecutionContext, 'teardown'>, files?: Files) {
  template ??= createTemplate();
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'remote.git');
  const clone = join(folder, 'clone');
  let isCloneOld = true;
  cpSync(template, path, { recursive: true });

  function git(...args: readonly string[]): string {
    if (isCloneOld) {
      if (!existsSync(clone)) runGit(folder, ['clone', '--quiet', path, clone]);
      runGit(clone, ['fetch', '--quiet', 'origin']);
      runGit(clone, ['reset', '--quiet', '--hard', 'origin/main']);
      isCloneOld = false;
    }
    return runGit(clone, args);
  }

  function push(files: Files, message = 'change'): string {
    isCloneOld = true;
    for (let attempt = 1; ; attempt++) {
      try {
        return commit(path, ['from refs/heads/main^0'], files, message);
      } catch (error) {
        if (attempt === mostAttempts) throw error;
      }
    }
  }

  if (files !== undefined) push(files);
  return {
    /** A temporary folder for this repository and the test's other files, removed after the test. */
    folder,
    /** The bare repository. */
    path,
    url: `file://${path}`,
    /** Runs git in a clone, which is at the last `push` or `rewrite`. */
    git,
    /** Runs git in the bare repository. */
    gitAtRemote: (...args: readonly string[]) => runGit(path, args),
    /** A commit on top of the branch: texts by path, undefined deletes. Returns the commit's id. */
    push,
    /** Replaces the whole history of the branch by one commit with these files. */
    rewrite(files: Files) {
      isCloneOld = true;
      return commit(path, [], files, 'rewritten');
    },
    /** Makes it unreachable, and reachable again. */
    hide: () => renameSync(path, `${path}.hidden`),
    show: () => {
      if (existsSync(`${path}.hidden`)) renameSync(`${path}.hidden`, path);
    },
  };
}

/** The initial content of all repositories of this process. */
function createTemplate(): string {
  const folder = createTemporaryFolder({ teardown: (remove) => void process.once('exit', remove) });
  runGit(folder, ['init', '--quiet', '--bare', '--initial-branch=main', '--template=']);
  mkdirSync(join(folder, 'hooks'));
  // Another process may stall while it holds the lock; by default Git waits only a tenth of a second.
  runGit(folder, ['config', 'core.filesRefLockTimeout', '20000']);
  runGit(folder, ['config', 'core.packedRefsTimeout', '20000']);
  // Otherwise a further process unpacks each commit.
  runGit(folder, ['config', 'fastimport.unpackLimit', '1']);
  commit(folder, [], {}, 'begin');
  return folder;
}

/** Makes it the branch's newest, and returns its id. */
function commit(
  repository: string,
  parent: readonly string[],
  files: Files,
  message: string,
): string {
  const data = (bytes: string | Buffer) => [`data ${Buffer.byteLength(bytes)}\n`, bytes, '\n'];
  const changes = Object.entries(files).flatMap(([path, bytes]) =>
    bytes === undefined ? [`D ${path}\n`] : [`M 100644 inline ${path}\n`, ...data(bytes)],
  );
  const stream = [
    'commit refs/heads/main\n',
    'mark :1\n',
    `committer ${ann} now\n`,
    ...data(`${message}\n`),
    ...parent.map((line) => `${line}\n`),
    ...changes,
    'get-mark :1\n',
    'done\n',
  ];
  const flags = [
    '--quiet',
    '--done',
    '--date-format=now',
    ...(parent.length > 0 ? [] : ['--force']),
  ];
  const input = Buffer.concat(stream.map((part) => Buffer.from(part)));
  return runGit(repository, ['fast-import', ...flags], input);
}

function runGit(cwd: string, args: readonly string[], input?: Buffer): string {
  return execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    timeout: 60_000,
    stdio: 'pipe',
    env: annEnvironment,
    ...(input && { input }),
  }).trim();
}

export interface HttpAccess {
  readonly username: string;
  /** May be changed while it is served. */
  password: string;
}

/** Serves the repository over HTTP on loopback until the test ends; returns the URL without a name or a password.
 * `slow` accepts connections and never answers. */
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
  return `http://127.0.0.1:${await listenFor(t, server)}/remote.git`;
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
