// Checks the configured Git repository and branch before they are passed to git: nothing in them may act as an option
// or start a program.

import { hasCredentials, mask } from '../../../shared/settings/shown-value.ts';

export interface GitAddress {
  /** For git's command line: without user name and password where git gets them in another way. */
  readonly url: string;
  /** The address for messages. */
  readonly shown: string;
  /** Credentials removed from the URL; undefined without any. */
  readonly credentials: GitCredentials | undefined;
  /** `https://host:port`, the only origin that receives credentials; undefined for addresses without credentials. */
  readonly credentialScope: string | undefined;
  /** Tokens in query parameters of the URL, which git may quote. */
  readonly secrets: readonly string[];
}

export interface GitCredentials {
  readonly username: string;
  readonly password: string;
}

export type GitAddressResult =
  | { readonly ok: true; readonly address: GitAddress }
  | { readonly ok: false; readonly reason: string };

/** For GIT_ALLOW_PROTOCOL: git refuses all other protocols, wherever a URL comes from. */
export const allowedProtocols = ['file', 'git', 'http', 'https', 'ssh'] as const;

const defaultUsername = 'git';
const shortestToken = 6;

/** Accepts any URL that git accepts (`https:`, `ssh:`, `git:`, `file:`, `host:path`, a local path), except those that
 * name a helper program, such as `ext::`. */
export function parseGitAddress(text: string): GitAddressResult {
  if (text === '') return refuse('it is empty');
  if (/[\p{Cc} ]/u.test(text)) return refuse('it has a space or a character that cannot be seen');
  if (text.startsWith('-')) return refuse("it begins with '-'");
  if (/^[\w+.-]+::/.test(text)) return refuse('it names a helper program before `::`');
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return parsePath(text);
  if (!isAllowed(scheme)) {
    return refuse(`its protocol is '${scheme}', not one of ${allowedProtocols.join(', ')}`);
  }
  if (scheme === 'file') {
    return /^file:\/\/[^/]*@/i.test(text) ? refuse('a file has no user') : accept(text);
  }
  return parseUrl(text, scheme);
}

function isAllowed(scheme: string): boolean {
  return allowedProtocols.some((allowed) => allowed === scheme);
}

/** A local path, or `user@host:path` over ssh. */
function parsePath(text: string): GitAddressResult {
  const beforePath = text.split('/')[0] ?? '';
  const host = beforePath.includes(':') ? (beforePath.split('@').at(-1) ?? '') : '';
  if (host.startsWith('-')) return refuse("its host begins with '-'");
  if (/^[^@:]*:[^@]*@/.test(beforePath)) {
    return refuse('ssh accepts no password in an address; use a key');
  }
  return accept(text);
}

function parseUrl(text: string, scheme: string): GitAddressResult {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return refuse('it is not a URL');
  }
  if (url.hostname === '' || url.hostname.startsWith('-')) {
    return refuse("it has no host, or one that begins with '-'");
  }
  if (scheme === 'ssh' || scheme === 'git') {
    if (url.password !== '') return refuse('ssh accepts no password in a URL; use a key');
    return accept(text, showUrl(url));
  }
  const username = decode(url.username);
  const password = decode(url.password);
  if (username === undefined || password === undefined) {
    return refuse('its user name or password is not percent-encoded');
  }
  url.username = '';
  url.password = '';
  // A token is often given as the user name, without a password.
  const credentials =
    password === ''
      ? { username: defaultUsername, password: username }
      : { username: username === '' ? defaultUsername : username, password };
  return {
    ok: true,
    address: {
      url: url.href,
      shown: showUrl(url),
      credentials: credentials.password === '' ? undefined : credentials,
      credentialScope: `${url.protocol}//${url.host}`,
      secrets: findTokens(url),
    },
  };
}

/** Both encoded and decoded. Short ones are omitted: they may be ordinary words. */
function findTokens({ search }: URL): string[] {
  const parameters = search.slice(1).split('&');
  return parameters.flatMap((parameter) => {
    const [, ...rest] = parameter.split('=');
    const value = rest.join('=');
    return value.length >= shortestToken ? [value, decode(value) ?? value] : [];
  });
}

function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text);
    // Each of these characters would start a new line of the credential protocol.
    return /[\0\r\n]/.test(decoded) ? undefined : decoded;
  } catch {
    return undefined;
  }
}

/** Shows no user except `git@`, and no values of parameters. */
function showUrl({ protocol, username, host, pathname, search }: URL): string {
  const user = username === 'git' ? 'git@' : '';
  const path = hasCredentials(pathname) ? `/${mask}` : pathname;
  return `${protocol}//${user}${host}${path}${search === '' ? '' : `?${mask}`}`;
}

function accept(url: string, shown = hasCredentials(url) ? mask : url): GitAddressResult {
  const address = {
    url,
    shown,
    credentials: undefined,
    credentialScope: undefined,
    secrets: [],
  };
  return { ok: true, address };
}

function refuse(reason: string): GitAddressResult {
  return { ok: false, reason };
}

/** Why this is not a valid name of a branch or tag; undefined for a valid one (git-check-ref-format). */
export function reasonAgainstRefName(name: string): string | undefined {
  if (name === '' || name.length > 255) return 'a name has 1 to 255 characters';
  if (name.startsWith('-')) return "a name cannot begin with '-'";
  const forbidden = /[\p{Cc} ~^:?*[\\]|\.\.|@\{|\/\/|^@$/u.exec(name);
  if (forbidden) return `a name cannot have '${forbidden[0]}' in it`;
  const isBadPart = (part: string) => part.startsWith('.') || /(?:\.|\.lock)$/.test(part);
  if (/^\/|\/$/.test(name) || name.split('/').some(isBadPart)) {
    return "no part of a name can be empty, begin or end with '.', or end with '.lock'";
  }
  return undefined;
}

/** Why this is not a valid folder in a repository; '' means the whole repository. */
export function reasonAgainstFolder(folder: string): string | undefined {
  if (folder === '') return undefined;
  if (/[\p{Cc}\\]/u.test(folder)) return 'it has a character that a folder cannot have';
  const parts = folder.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    return "no part of it can be empty, '.' or '..'";
  }
  return parts.includes('.git') ? "it cannot be in '.git'" : undefined;
}
