// Parses KVSTORE_URL into the address of one server, or of the sentinels or cluster nodes that report the others.
import { isHost, parseHostPort, showHostPort } from '../../../shared/host-port.ts';
import type { Credentials } from './credentials.ts';

export interface TcpAddress {
  readonly kind: 'tcp';
  readonly host: string;
  readonly port: number;
}

/** The address at which one server listens. */
export type StoreAddress = TcpAddress | { readonly kind: 'unix'; readonly path: string };

/** Several servers that report the one to count with. */
export type StoreGroup =
  | {
      readonly kind: 'sentinel';
      readonly master: string;
      /** Addresses of the sentinels. */
      readonly addresses: readonly TcpAddress[];
    }
  | {
      readonly kind: 'cluster';
      /** Addresses of nodes that report the others. */
      readonly addresses: readonly TcpAddress[];
    };

/** KVSTORE_TYPE. */
export type StoreType = 'single' | StoreGroup['kind'];

export interface StoreTarget<Address = StoreAddress | StoreGroup> {
  readonly address: Address;
  /** Whether the address requires TLS. */
  readonly tls: boolean;
  /** Credentials in the address itself. */
  readonly credentials: Credentials | undefined;
  /** The number of the database to select. */
  readonly database: number;
}

export type StoreTargetResult<Address = StoreAddress | StoreGroup> =
  | { readonly ok: true; readonly value: StoreTarget<Address> }
  | {
      readonly ok: false;
      readonly reason: string;
      /** The setting that part of the text belongs in: the kind of the addresses, or the credentials. */
      readonly belongsTo?: 'type' | 'auth';
    };

const defaultPort = 6379;

/**
 * For `single`: `host:port`, `redis://user:password@host:port/db` (user, password and db also as query items; `rediss:`
 * requires TLS), a path that begins with `/`, or `unix:` and a path; with `socketType` undefined the form is derived
 * from the text. For the others a comma-separated list of the first two forms, for `sentinel` after the master's name.
 * Reasons never quote the text, which may contain a password.
 */
export function parseStoreTarget(
  text: string,
  type: StoreType,
  socketType: 'tcp' | 'unix' | undefined,
): StoreTargetResult {
  if (type === 'single') return parseSingle(text, socketType);
  const items = text.split(',');
  if (type === 'cluster') return parseGroup(items, (addresses) => ({ kind: 'cluster', addresses }));
  const [master, ...sentinels] = items;
  if (master === undefined || master === '' || sentinels.length === 0) {
    return bad('sentinels need the name of the master and at least one address');
  }
  if (!/^[\w.-]+$/.test(master)) {
    return bad('the name of the master has an invalid character');
  }
  return parseGroup(sentinels, (addresses) => ({ kind: 'sentinel', master, addresses }));
}

function parseGroup(
  items: readonly string[],
  toGroup: (addresses: TcpAddress[]) => StoreGroup,
): StoreTargetResult {
  const addresses: TcpAddress[] = [];
  let tls = false;
  for (const [index, item] of items.entries()) {
    const name = `address ${index + 1}`;
    const ofAuth = bad(`${name}: credentials have a setting of their own`, 'auth');
    if (!isUrl(item) && isOption(item)) return ofAuth;
    const result = isUrl(item) ? parseUrl(item) : parseAddress(item);
    if (!result.ok) return bad(`${name}: ${result.reason}`);
    const { value } = result;
    if (value.credentials !== undefined) return ofAuth;
    if (value.database !== 0) return bad(`${name}: a database cannot be chosen`);
    tls ||= value.tls;
    addresses.push(value.address);
  }
  return {
    ok: true,
    value: { address: toGroup(addresses), tls, credentials: undefined, database: 0 },
  };
}

function parseSingle(
  text: string,
  socketType: 'tcp' | 'unix' | undefined,
): StoreTargetResult<StoreAddress> {
  const isPath = text.startsWith('/') || text.startsWith('unix:');
  if (socketType === 'unix' || (socketType === undefined && isPath)) {
    if (isUrl(text) || (!isPath && /:\d+$/.test(text))) {
      return bad('this is not the path of a unix socket');
    }
    const path = text.replace(/^unix:(\/\/)?/, '');
    return path === '' ? bad('the path is missing') : good({ kind: 'unix', path });
  }
  if (isPath) return bad('this is the path of a unix socket');
  const [first = '', ...others] = text.split(',');
  if (others.length > 0 && others.every((item) => parseHostPort(item.trim(), 1).ok)) {
    return bad('this is a list of addresses', 'type');
  }
  if (!isUrl(first) && others.some(isOption)) {
    return bad('the address is followed by options, which have settings of their own', 'auth');
  }
  return isUrl(text) ? parseUrl(text) : parseAddress(text);
}

function isUrl(text: string): boolean {
  return /^[a-z]+:\/\//i.test(text) && !text.startsWith('unix:');
}

/** `user:password@host`, or `password=...` as other clients have it after an address. */
function isOption(item: string): boolean {
  return /[=@]/.test(item);
}

function parseAddress(text: string): StoreTargetResult<TcpAddress> {
  const result = parseHostPort(text, 1);
  if (!result.ok) return result;
  return good({ kind: 'tcp', host: result.value.host || 'localhost', port: result.value.port });
}

function parseUrl(text: string): StoreTargetResult<TcpAddress> {
  if (!/^rediss?:/i.test(text)) return bad('the address begins with an unknown scheme');
  const url = URL.parse(text);
  if (url === null) return bad('this is not a valid URL');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (!isHost(host)) return bad('the host has an invalid character');
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
        host: host || 'localhost',
        port: url.port === '' ? defaultPort : Number(url.port),
      },
      tls: /^rediss:/i.test(text),
      credentials: password === undefined ? undefined : { username, password },
      database: Number(database),
    },
  };
}

/** Leaves a percent sign unchanged that is not part of an escape. */
function decode(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

/** The address for logs and errors, without credentials. */
export function showStoreAddress(address: StoreAddress | StoreGroup): string {
  switch (address.kind) {
    case 'unix':
      return address.path;
    case 'tcp':
      return showHostPort(address);
    case 'sentinel':
      return `${address.master} of sentinels ${address.addresses.map(showStoreAddress).join(',')}`;
    case 'cluster':
      return `cluster ${address.addresses.map(showStoreAddress).join(',')}`;
  }
}

function good<Address>(address: Address): StoreTargetResult<Address> {
  return { ok: true, value: { address, tls: false, credentials: undefined, database: 0 } };
}

function bad(reason: string, belongsTo?: 'type' | 'auth'): StoreTargetResult<never> {
  return { ok: false, reason, ...(belongsTo && { belongsTo }) };
}
