// Bearer tokens and their scopes, from a file that is read again when it changes. authorize.ts checks requests.
import { createHash, timingSafeEqual } from 'node:crypto';
import { type Clock, repeatAfter } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { readSecretFile } from '../../../shared/small-file.ts';
import { checkToken } from '../token-file.ts';

/** `write` includes `read`; `xds` is only for workers. */
const scopes = ['read', 'write', 'xds'] as const;
export type Scope = (typeof scopes)[number];

export interface TokenOwner {
  /** The token's name in the file, for the audit log. */
  readonly name: string;
  readonly scope: Scope;
}

export interface TokenSet {
  /** Undefined for an unknown token. Takes the same time for all tokens of a set. */
  find(token: string): TokenOwner | undefined;
}

export type TokensResult =
  | { readonly ok: true; readonly tokens: TokenSet; readonly count: number }
  /** Sentences, without tokens. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** Shorter ones can be guessed. */
export const shortestToken = 16;
const maxTokens = 1000;
const maxFileBytes = 1024 * 1024;

/** One token per line: a name, a scope and the token, separated by spaces. Blank lines and lines that begin with `#`
 * are skipped. */
export function parseTokens(text: string, file: string): TokensResult {
  const problems: string[] = [];
  const entries: { owner: TokenOwner; digest: Buffer }[] = [];
  const names = new Set<string>();
  /** The holders by the hash of their token. */
  const holders = new Map<string, string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const position = `${file}:${index + 1}`;
    const [name = '', scope = '', token = '', ...rest] = line.trim().split(/\s+/);
    if (token === '' || rest.length > 0) {
      problems.push(`${position}: write a name, a scope and a token, with spaces between`);
      continue;
    }
    const digest = toDigest(token);
    if (!isScope(scope)) problems.push(`${position}: the scope is not one of ${scopes.join(', ')}`);
    else entries.push({ owner: { name, scope }, digest });
    if (!/^[\w.@-]{1,64}$/.test(name)) {
      problems.push(`${position}: a name has 1 to 64 letters, digits and . _ @ -`);
    } else if (names.has(name))
      problems.push(`${position}: there are two tokens of the name ${name}`);
    names.add(name);
    const holder = holders.get(digest.toString('hex'));
    if (holder !== undefined) problems.push(`${position}: it is the token of ${holder} as well`);
    else holders.set(digest.toString('hex'), name);
    if (token.length < shortestToken) {
      problems.push(`${position}: a token has at least ${shortestToken} characters`);
    }
  }
  if (entries.length > maxTokens) problems.push(`${file}: more than ${maxTokens} tokens`);
  if (entries.length === 0 && problems.length === 0)
    problems.push(`${file}: there is no token in it`);
  if (problems.length > 0) return { ok: false, problems };
  const tokens: TokenSet = {
    find(token) {
      const digest = toDigest(token);
      let owner: TokenOwner | undefined;
      for (const entry of entries) if (timingSafeEqual(entry.digest, digest)) owner = entry.owner;
      return owner;
    },
  };
  return { ok: true, tokens, count: entries.length };
}

/** The whole text is the single token that control planes send each other. */
export function parsePeerToken(text: string, file: string): TokensResult {
  const token = checkToken(text.trim(), file);
  if (!token.ok) return { ok: false, problems: [token.message] };
  return parseTokens(`peer read ${token.value}`, file);
}

export interface TokenFile extends TokenSet {
  /** Idempotent. */
  close(): void;
}

export interface TokenFileDeps {
  readonly path: string;
  /** The setting that names the file, for messages. */
  readonly setting: string;
  readonly parse: (text: string, file: string) => TokensResult;
  readonly log: Log;
  readonly clock: Clock;
  readonly intervalMs?: number;
}

/** The file is also checked at this interval: not every change of a mounted secret emits an event. */
const defaultIntervalMs = 2_000;

/** Rejects with an AppError `cannot_start`. When the file becomes unreadable or invalid later, the tokens in force
 * stay, and each problem is logged once. */
export async function openTokenFile(deps: TokenFileDeps): Promise<TokenFile> {
  const { path, setting, log, clock, intervalMs = defaultIntervalMs } = deps;
  const first = await readTokens(deps);
  if (!first.ok) {
    const lines = first.problems.map((problem) => `${setting}: ${problem}`);
    throw new AppError('cannot_start', lines.join('\n'));
  }
  let inForce = first;
  let lastProblem = '';
  let isClosed = false;
  const stop = repeatAfter(clock, intervalMs, async () => {
    const reading = await readTokens(deps);
    if (!isClosed) accept(reading);
  });

  function accept(reading: FileReading): void {
    if (!reading.ok) {
      const text = reading.problems.join('\n');
      if (text !== lastProblem) log.error(`The earlier tokens stay in force: ${text}`);
      lastProblem = text;
      return;
    }
    lastProblem = '';
    if (reading.digest.equals(inForce.digest)) return;
    inForce = reading;
    log.info(`${path} has changed: ${reading.count} tokens are in force`);
  }

  return {
    find: (token) => inForce.tokens.find(token),
    close() {
      isClosed = true;
      stop();
    },
  };
}

type FileReading =
  | (TokensResult & { readonly ok: true } & { readonly digest: Buffer })
  | (TokensResult & { readonly ok: false });

async function readTokens({ path, parse }: TokenFileDeps): Promise<FileReading> {
  let text: string;
  try {
    text = await readSecretFile(path, maxFileBytes);
  } catch (error) {
    return { ok: false, problems: [`the tokens file cannot be read: ${errorText(error)}`] };
  }
  const result = parse(text, path);
  return result.ok ? { ...result, digest: toDigest(text) } : result;
}

function isScope(word: string): word is Scope {
  return scopes.some((scope) => scope === word);
}

function toDigest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
