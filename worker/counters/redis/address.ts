// Where a single key-value server is: the text of KVSTORE_URL to an address. What stands for several
// nodes (sentinel, cluster) is not read here.

export interface RedisAddress {
  readonly target: { readonly host: string; readonly port: number } | { readonly path: string };
  readonly username: string;
  readonly password: string;
  readonly database: number;
  /** For logs and errors: the address without credentials. */
  readonly masked: string;
}

export type ParsedRedisAddress =
  | { readonly ok: true; readonly address: RedisAddress }
  | { readonly ok: false; readonly problem: string };

const defaultPort = 6379;

/**
 * Reads `host:port`, `[ipv6]:port`, `:port` (the local host), `redis://user:pass@host:port/db`
 * (also with username, password and db as query parameters), or, for `unix`, the socket's path.
 */
export function parseRedisAddress(socketType: 'tcp' | 'unix', text: string): ParsedRedisAddress {
  if (text === '') return { ok: false, problem: 'the address is empty' };
  if (text.startsWith('rediss://')) {
    return { ok: false, problem: 'rediss:// is not understood here: switch TLS on by its setting' };
  }
  if (text.startsWith('redis://')) return parseUrl(text);
  if (socketType === 'unix') return { ok: true, address: toAddress({ path: text }, text) };
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<host>[^:@/\s]*)):(?<port>\d{1,5})$/.exec(text);
  const port = Number(match?.groups?.['port']);
  if (match === null || port < 1 || port > 65_535) {
    const masked = text.includes('@') ? `*****@${text.slice(text.lastIndexOf('@') + 1)}` : text;
    return { ok: false, problem: `"${masked}" is not host:port` };
  }
  const host = match.groups?.['ipv6'] ?? (match.groups?.['host'] || 'localhost');
  return { ok: true, address: toAddress({ host, port }, text) };
}

function parseUrl(text: string): ParsedRedisAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const masked = maskUrl(text);
  if (url === undefined) return { ok: false, problem: `"${masked}" is not a redis:// URL` };
  const databaseText = url.searchParams.get('db') ?? url.pathname.slice(1);
  if (!/^\d{0,9}$/.test(databaseText)) {
    return { ok: false, problem: `"${databaseText}" in "${masked}" is not a database number` };
  }
  let credentials: string[];
  try {
    credentials = [url.username, url.password].map(decodeURIComponent);
  } catch {
    return { ok: false, problem: `the credentials in "${masked}" are not percent-encoded` };
  }
  const target = {
    host: url.hostname.replace(/^\[|\]$/g, '') || 'localhost',
    port: url.port === '' ? defaultPort : Number(url.port),
  };
  const address = {
    target,
    username: url.searchParams.get('username') ?? credentials[0] ?? '',
    password: url.searchParams.get('password') ?? credentials[1] ?? '',
    database: Number(databaseText),
    masked,
  };
  return { ok: true, address };
}

/** The form of the reference (reference-behaviour 12); a query may hold credentials too. */
function maskUrl(text: string): string {
  const question = text.indexOf('?');
  const base = question === -1 ? text : `${text.slice(0, question)}?*****`;
  return base.includes('@') ? `redis://*****@${base.slice(base.lastIndexOf('@') + 1)}` : base;
}

function toAddress(target: RedisAddress['target'], masked: string): RedisAddress {
  return { target, username: '', password: '', database: 0, masked };
}
