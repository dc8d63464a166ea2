// Reads the location of the record from the text of `--record`.
import { isHost } from '../../../../shared/host-port.ts';
import type { EtcdAddress } from './etcd-shared-text.ts';
import type { KubernetesAddress } from './kubernetes-shared-text.ts';
import type { RedisAddress } from './redis-shared-text.ts';

export type EngineAddress = RedisAddress | EtcdAddress | KubernetesAddress;

export type RecordAddress =
  | {
      readonly ok: true;
      readonly address: EngineAddress;
      /** The password in the address; undefined if absent. */
      readonly password: string | undefined;
    }
  /** `reason` never quotes the text, which may contain a password. */
  | { readonly ok: false; readonly reason: string };

const forms =
  'write redis://HOST:6379, rediss://HOST:6379, etcd:https://HOST:2379 or kubernetes:NAMESPACE/NAME';
const maxEndpoints = 16;
const maxDatabase = 65_535;

/** An etcd address can be a list: `etcd:https://a:2379,https://b:2379`. */
export function parseRecordAddress(text: string): RecordAddress {
  if (/^rediss?:\/\//i.test(text)) return readRedis(text);
  if (text.startsWith('etcd:')) return readEtcd(text.slice('etcd:'.length));
  if (text.startsWith('kubernetes:')) return readKubernetes(text.slice('kubernetes:'.length));
  return bad(forms);
}

function readRedis(text: string): RecordAddress {
  const login = readUrl(text);
  if (typeof login === 'string') return bad(login);
  const { url, username, password } = login;
  const [, database = '0'] = /^\/?(\d{1,5})?$/.exec(url.pathname) ?? [undefined, 'x'];
  if (!(Number(database) <= maxDatabase)) {
    return bad(
      'after the host comes the number of a database or nothing, such as redis://HOST:6379/1',
    );
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (!isHost(host) || host === '') return bad('the host is missing or has a wrong character');
  const address: RedisAddress = {
    kind: 'redis',
    address: { host, port: url.port === '' ? 6379 : Number(url.port) },
    isTls: url.protocol === 'rediss:',
    database: Number(database),
    username,
  };
  return { ok: true, address, password };
}

function readEtcd(text: string): RecordAddress {
  const logins = text.split(',').map((each) => readUrl(each.trim()));
  const endpoints: URL[] = [];
  for (const login of logins) {
    if (typeof login === 'string') return bad(login);
    const { url } = login;
    if (!/^https?:$/.test(url.protocol) || url.pathname !== '/') {
      return bad(
        'etcd: is followed by addresses without a path, such as etcd:https://a:2379,https://b:2379',
      );
    }
    endpoints.push(new URL(`${url.protocol}//${url.host}`));
  }
  if (endpoints.length > maxEndpoints) return bad(`more than ${maxEndpoints} addresses`);
  const [first] = logins;
  if (first === undefined || typeof first === 'string') return bad(forms);
  const { username, password } = first;
  return { ok: true, address: { kind: 'etcd', endpoints, username }, password };
}

function readKubernetes(text: string): RecordAddress {
  const [namespace = '', name = '', ...others] = text.split('/');
  // The syntax of names in Kubernetes: of a namespace, and of an object.
  const isNamespace = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/.test(namespace);
  const isName = name.length <= 253 && /^[a-z\d](?:[a-z\d.-]*[a-z\d])?$/.test(name);
  if (isNamespace && isName && others.length === 0) {
    return { ok: true, address: { kind: 'kubernetes', namespace, name }, password: undefined };
  }
  return bad(
    'after kubernetes: come a namespace and the name of a ConfigMap, such as kubernetes:rate-limit/ratelane-record',
  );
}

interface Login {
  readonly url: URL;
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** Returns the reason for an invalid text. */
function readUrl(text: string): Login | string {
  const url = URL.parse(text);
  if (url === null || url.port === '0') return forms;
  if (url.search !== '' || url.hash !== '') return 'nothing may follow the address';
  const [username, password] = [decode(url.username), decode(url.password)];
  if (username === undefined || password === undefined) {
    return 'a percent sign in the user or the password has to be written %25';
  }
  return { url, username: username || undefined, password: password || undefined };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function bad(reason: string): RecordAddress {
  return { ok: false, reason };
}
