// Runs git: with limits on time and output, without prompts, and without secrets in its arguments. The other git-*
// files build the commands.
import { type ChildProcess, spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { AppError, errorText } from '../../../shared/errors.ts';
import { redact } from '../../../shared/redact.ts';
import { codeOf } from '../../../shared/rules-directory.ts';
import { maskFile } from '../../../shared/settings/shown-value.ts';
import { readSecretFile } from '../../../shared/small-file.ts';
import { trimEnd } from '../../../shared/trim-end.ts';
import { allowedProtocols, type GitAddress, type GitCredentials } from './git-address.ts';
import { Semaphore } from './semaphore.ts';

export interface RunOptions {
  readonly timeoutMs: number;
  /** The setting that configures the time limit. */
  readonly timeoutSetting?: string;
  /** Limit of the output in bytes. */
  readonly maxBytes?: number;
  /** In parts; each is generated when git has accepted the previous one. */
  readonly input?: string | Iterable<string>;
  readonly environment?: Readonly<Record<string, string>>;
  /** Git's configuration for this command only. */
  readonly config?: readonly (readonly [string, string])[];
  readonly signal?: AbortSignal | undefined;
  /** Receives what git wrote on standard error although it succeeded, without secrets. */
  readonly onWarnings?: (text: string) => void;
  /** Whether the command may contact the remote, and so needs the credentials. */
  readonly isRemote?: boolean;
}

export interface Git {
  /** Standard output. Rejects with a GitError when git fails, is too slow or writes too much. */
  run(args: readonly string[], options: RunOptions): Promise<Buffer>;
}

/** `message` is human-readable, without secrets. */
export class GitError extends AppError {
  /** Git's standard output and standard error, without secrets. Undefined when git did not exit by itself. */
  readonly output: string | undefined;
  /** The exit code of git; undefined when git did not exit by itself. */
  readonly exitCode: number | undefined;

  constructor(
    message: string,
    output: string | undefined,
    { exitCode, ...options }: { cause?: unknown; exitCode?: number } = {},
  ) {
    super('store', message, options);
    this.name = 'GitError';
    this.output = output;
    this.exitCode = exitCode;
  }
}

export interface GitDeps {
  /** The bare repository; need not exist for `init`. */
  readonly repository: string;
  readonly address: GitAddress;
  /** The environment of the process. PATH, HOME, proxies, GIT_SSH_COMMAND, SSH_AUTH_SOCK and the like are
   * passed to git; variables that select another repository, or enable tracing, are not. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Read again for each command that may contact the remote, to pick up a changed secret. */
  readCredentials(): Promise<GitCredentials | undefined>;
  /** The most processes at once. */
  readonly most?: number;
}

/** For a fetch: a large repository over a slow line takes minutes. */
export const fetchTimeoutMs = 300_000;

/** The most processes at once for one repository: any caller with read access can request some with each call. */
export const mostProcesses = 8;
const maxErrorBytes = 64 * 1024;
const defaultMaxBytes = 1024 * 1024;
const shownErrorLength = 600;
const tokenLength = 16;
/** How long standard error is read after git's end: a shared connection that ssh keeps open would hold the pipe open
 * longer. Standard output is used by git alone. */
const drainMs = 1_000;

/** Of git's own variables, only those for reaching the remote are passed on. */
const passedVariables =
  /^(?!GIT_)|^GIT_(?:SSH|SSH_COMMAND|SSH_VARIANT|SSL_\w+|PROXY_\w+|HTTP_\w+|EXEC_PATH|CONFIG_NOSYSTEM|CONFIG_GLOBAL|CONFIG_SYSTEM)$/;

/** A credential helper: its output goes to git alone, and no file is needed. */
const credentialHelper =
  '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$RATELANE_GIT_USERNAME" "$RATELANE_GIT_PASSWORD"; }; f';

/** Applies to all commands. */
const fixedConfig = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['gc.autoDetach', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['push.recurseSubmodules', 'no'],
  ['push.gpgSign', 'false'],
  ['protocol.version', '2'],
  ['i18n.commitEncoding', 'UTF-8'],
  ['i18n.logOutputEncoding', 'UTF-8'],
] as const;

export function createGit({
  repository,
  address,
  environment,
  readCredentials,
  most = mostProcesses,
}: GitDeps): Git {
  /** The secrets of the most recently read credentials. */
  let latest: readonly string[] = [];
  const sameForAll = {
    ...Object.fromEntries(
      Object.entries(environment).filter(([name]) => passedVariables.test(name)),
    ),
    GIT_DIR: repository,
    GIT_ALLOW_PROTOCOL: allowedProtocols.join(':'),
    GIT_TERMINAL_PROMPT: '0',
    // Empty, so that git runs no askpass program at all.
    GIT_ASKPASS: '',
    SSH_ASKPASS_REQUIRE: 'never',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    LC_ALL: 'C',
  };
  const configForAll = [['safe.directory', repository], ...fixedConfig] as const;

  function mask(text: string, own: readonly string[]): string {
    const secrets = [...address.secrets, ...latest, ...own];
    return redact(text.replaceAll(/(:\/\/)[^/@\s]+@/g, '$1*****@'), secrets);
  }

  const slots = new Semaphore(most);

  return {
    async run(args, options) {
      await using _slot = await slots.acquire(options.signal);
      const credentials = options.isRemote ? await readCredentials() : undefined;
      const own = credentials ? toSecrets(credentials) : [];
      if (credentials) latest = own;
      const { code, stdout, stderr, reason, cause } = await runProcess(args, options, {
        ...sameForAll,
        ...toConfig([
          ...configForAll,
          ...toCredentialConfig(credentials && address.credentialScope),
          ...(options.config ?? []),
        ]),
        ...(credentials && {
          RATELANE_GIT_USERNAME: credentials.username,
          RATELANE_GIT_PASSWORD: credentials.password,
        }),
        ...options.environment,
      });
      const what = `git ${args[0]}`;
      if (reason !== undefined)
        throw new GitError(`${what} ${mask(reason, own)}`, undefined, { cause });
      const reply = mask(stderr, own);
      if (code !== 0) {
        const output = `${mask(stdout.toString(), own)}\n${reply}`;
        const exitCode = code ?? undefined;
        throw new GitError(
          `${what} failed: ${toShown(reply)}`,
          output,
          exitCode === undefined ? {} : { exitCode },
        );
      }
      options.onWarnings?.(reply);
      return stdout;
    },
  };
}

/** The password or token for a repository. */
export interface GitCredentialSettings {
  /** '' for hosts that accept any user name with a token. */
  readonly username: string;
  /** '' when there is none. */
  readonly password: string;
  /** Takes precedence over `password`, and is read again for each use; '' when there is none. */
  readonly passwordFile: string;
}

const anyUsername = 'git';
const maxPasswordLength = 64 * 1024;

/** The function rejects with an AppError `store` that names the file, without its content. */
export function createCredentialReader(
  settings: GitCredentialSettings,
): () => Promise<GitCredentials | undefined> {
  const username = settings.username === '' ? anyUsername : settings.username;
  return async () => {
    const { passwordFile } = settings;
    const text = passwordFile === '' ? settings.password : await readPassword(passwordFile);
    const password = trimEnd(text, '\r\n');
    if (password === '' && passwordFile !== '') {
      throw new AppError('store', `${passwordFile} has no password: it is empty`);
    }
    if (password === '') return undefined;
    if (/[\0\r\n]/.test(username + password) || password.length > maxPasswordLength) {
      const source = passwordFile === '' ? 'the Git password' : maskFile(passwordFile);
      throw new AppError(
        'store',
        `${source} is not a password: it has several lines, or is too long`,
      );
    }
    return { username, password };
  };
}

async function readPassword(path: string): Promise<string> {
  try {
    return await readSecretFile(path, maxPasswordLength);
  } catch (error) {
    throw new AppError(
      'store',
      `the Git password cannot be read from ${maskFile(path)} (${codeOf(error)})`,
    );
  }
}

/** `scope`: the only origin that receives the credentials; undefined without any. */
function toCredentialConfig(scope: string | undefined): (readonly [string, string])[] {
  if (scope === undefined) return [];
  return [
    // Drops configured helpers, which might store these credentials.
    ['credential.helper', ''],
    [`credential.${scope}.helper`, ''],
    [`credential.${scope}.helper`, credentialHelper],
  ];
}

function toConfig(pairs: readonly (readonly [string, string])[]): Record<string, string> {
  const numbered = pairs.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(pairs.length), ...Object.fromEntries(numbered) };
}

/** The secrets in every form in which git sends them, since the server may quote them. */
function toSecrets({ username, password }: GitCredentials): string[] {
  // The user name may be a token.
  const secrets = username.length >= tokenLength ? [password, username] : [password];
  const basic = Buffer.from(`${username}:${password}`).toString('base64');
  return [...secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]), basic];
}

/** Lines without the reason: warnings and hints concern git's own copy, advice addresses a user at a terminal, and ssh
 * puts a frame around a host's changed key. */
const noise =
  /^(?:warning: |hint: |@|Please make sure|and the repository exists|IT IS POSSIBLE|Someone could be|It is also possible|Add correct host key|Offending )/;

/** The lines of the error that contain the reason, joined into one line. */
function toShown(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const graves = lines.filter((line) => !noise.test(line));
  const text = (graves.length > 0 ? graves : lines).join('; ');
  if (text === '') return 'it printed nothing';
  if (text.length <= shownErrorLength) return text;
  // The last line has the result.
  const half = shownErrorLength / 2;
  return `${text.slice(0, half)} ... ${text.slice(-half)}`.toWellFormed();
}

interface ProcessResult {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
  /** Set when git did not exit by itself, or never started. */
  readonly reason: string | undefined;
  readonly cause: unknown;
}

async function runProcess(
  args: readonly string[],
  { timeoutMs, timeoutSetting, maxBytes = defaultMaxBytes, input = '', signal }: RunOptions,
  env: Record<string, string | undefined>,
): Promise<ProcessResult> {
  signal?.throwIfAborted();
  const closed = Promise.withResolvers<number | null>();
  const stdout: Buffer[] = [];
  let length = 0;
  let stderr = '';
  let failure: Pick<ProcessResult, 'reason' | 'cause'> | undefined;
  // Git gets its own process group, without a terminal: ssh cannot prompt, and git's helpers are ended with it. When
  // descriptors run out, the child has no pipes, and `error` follows on the next tick.
  const child: ChildProcess = spawn('git', args, { env, detached: true, stdio: 'pipe' });
  child.on('error', (error) => {
    failure = { reason: `cannot be started: ${errorText(error)}`, cause: error };
    closed.resolve(null);
  });
  child.on('close', closed.resolve);
  const end = (why: string) => {
    failure ??= { reason: why, cause: undefined };
    killGroup(child);
  };
  const more = timeoutSetting === undefined ? '' : ` (${timeoutSetting})`;
  const timer = setTimeout(
    () => end(`did not answer within ${timeoutMs / 1000}s${more}`),
    timeoutMs,
  );
  const abort = () => end('was stopped');
  signal?.addEventListener('abort', abort, { once: true });

  child.stdout?.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > maxBytes) end(`answered with more than ${maxBytes} bytes`);
    else stdout.push(chunk);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-maxErrorBytes);
  });
  child.stdout?.on('error', (error) => end(`cannot be read: ${errorText(error)}`));
  // Only the reason of a failure is lost.
  child.stderr?.on('error', () => {});
  // A process that exits without reading its input reports the reason in other ways.
  child.stdin?.on('error', () => {});
  if (child.stdin) Readable.from(input).pipe(child.stdin);
  let drainTimer: NodeJS.Timeout | undefined;
  child.on('exit', () => {
    drainTimer = setTimeout(() => {
      // Waits one more turn of the event loop: the timer may be late because reading was blocked.
      setImmediate(() => {
        child.stderr?.destroy();
        if (failure !== undefined) child.stdout?.destroy();
      });
    }, drainMs);
  });
  const code = await closed.promise;
  clearTimeout(timer);
  clearTimeout(drainTimer);
  signal?.removeEventListener('abort', abort);
  const { reason, cause } = failure ?? {};
  return { code, stdout: Buffer.concat(stdout), stderr, reason, cause };
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Already ended.
  }
}
