// Where a key-value store is: the text of KVSTORE_URL to the address of one server, or to those of the
// sentinels or cluster nodes that know the others.
import { parseHostPort } from '../../../shared/host-port.ts';
import type { Credentials } from './credentials.ts';

/** Where one store listens. */
export type StoreAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

export interface StoreTarget {
  readonly address: StoreAddress;
  /** The address asks for TLS. */
  readonly tls: boolean;
  /** Those in the address itself. */
  readonly credentials: Credentials | undefined;
  /** The number of the database to select. */
  readonly database: number;
}

export type StoreTargetResult =
  | { readonly ok: true; readonly value: StoreTarget }
  | { readonly ok: false; readonly reason: string };

const defaultPort = 6379;

/**
 * `host:port`, `redis://user:password@host:port/db` (user, password and db also as query items; with
 * `rediss:` TLS is spoken), a path that begins with `/`, or `unix:` and a path. `socketType` undefined: the text tells which.
 * No reason repeats a part of the text, which may hold a password.
 */
export function parseStoreTarget(
  text: string,
  socketType: 'tcp' | 'unix' | undefined,
): StoreTargetResult {
  const isUrl = /^[a-z]+:\/\//i.test(text) && !text.startsWith('unix:');
  const isPath = text.startsWith('/') || text.startsWith('unix:');
  if (socketType === 'unix' || (socketType === undefined && isPath)) {
    if (isUrl || (!isPath && /:\d+$/.test(text))) {
      return bad('this is not the path of a unix socket');
    }
    const path = text.replace(/^unix:(\/\/)?/, '');
    if (path === '') return bad('the path is missing');
    return good({ kind: 'unix', path });
  }
  if (isPath) return bad('this is the path of a unix socket');
  return isUrl ? parseUrl(text) : parseAddress(text);
}

function parseAddress(text: string): StoreTargetResult {
  const result = parseHostPort(text, 1);
  if (!result.ok) return result;
  return good({ kind: 'tcp', host: result.value.host || 'localhost', port: result.value.port });
}

function parseUrl(text: string): StoreTargetResult {
  if (!/^rediss?:/i.test(text)) return bad('the address begins with an unknown scheme');
  const url = URL.parse(text);
  if (url === null) return bad('this is not a valid URL');
  const username = decode(url.username) || url.searchParams.get('username') || undefined;
  const password = decode(url.password) || url.searchParams.get('password') || undefined;
  const database = url.pathname.replace(/^\//, '') || url.searchParams.get('db') || '0';
  if (!/^\d{1,9}$/.test(database)) return bad('the database is not a number');
  if (password === undefined && username !== undefined) return bad('the password is missing');
  if (url.port === '0') return bad('the port is not a number from 1 to 65535');
  return {
    ok: true,
    value: {
      address: {
        kind: 'tcp',
        host: url.hostname.replace(/^\[|\]$/g, '') || 'localhost',
        port: url.port === '' ? defaultPort : Number(url.port),
      },
      tls: /^rediss:/i.test(text),
      credentials: password === undefined ? undefined : { username, password },
      database: Number(database),
    },
  };
}

/** A percent sign that stands for itself is left as it is. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** For logs and errors: an address has no credentials in it. */
export function showStoreAddress(address: StoreAddress): string {
  if (address.kind === 'unix') return address.path;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `${host}:${address.port}`;
}

function good(address: StoreAddress): StoreTargetResult {
  return { ok: true, value: { address, tls: false, credentials: undefined, database: 0 } };
}

function bad(reason: string): StoreTargetResult {
  return { ok: false, reason };
}
