// Remedies for a server's refusals: its error describes the problem, but names neither the worker's setting nor the
// server's own setting to change.
import { toEstablished } from '../../setting-names.ts';
import type { StoreType } from './address.ts';

export interface RemedyOptions {
  /** The name by which the address was given: other settings are named in the same family. */
  readonly addressSetting: string;
  readonly type: StoreType;
  /** The end of the name of the setting that provides the credentials. */
  readonly credentialsFrom: 'AUTH' | 'AUTH_FILE' | 'URL' | 'CLOUDIAM_USER_ID';
  readonly tls: boolean;
  readonly closesOnReadonly: boolean;
}

/** The remedy for a failure with this text; undefined if the text itself is the best explanation. */
export type DescribeRemedy = (failure: string) => string | undefined;

const wrongLogin = /\b(?:NOAUTH|WRONGPASS)\b|invalid (?:username-)?password/i;
const deniedCommand = /\bNOPERM\b.*'([\w|]+)' command/;

export function createRemedies(options: RemedyOptions): DescribeRemedy {
  const { addressSetting, type, credentialsFrom, tls, closesOnReadonly } = options;
  const of = (end: string) => {
    const name = addressSetting.replace(/URL$/, end);
    return name.startsWith('REDIS') ? toEstablished(name) : name;
  };
  const ofBoth = (end: string) => addressSetting.replace(/(?:PERSECOND_)?URL$/, end);
  const login = {
    AUTH: `write the password, or user:password, in ${of('AUTH')}`,
    AUTH_FILE: `write the password, or user:password, in the file of ${of('AUTH_FILE')}`,
    URL: `write user:password@ before the host in ${of('URL')}`,
    CLOUDIAM_USER_ID: `name a user of the cache with IAM authentication in ${of('CLOUDIAM_USER_ID')}`,
  };
  const loginOf = (failure: string) =>
    /\bsentinel /.test(failure)
      ? `write the password, or user:password, of the sentinels in ${of('SENTINEL_AUTH')}`
      : login[credentialsFrom];
  const sourceOf = (failure: string) =>
    of(/\bsentinel /.test(failure) ? 'SENTINEL_AUTH' : credentialsFrom);
  const readonly = ofBoth('CLOSE_CONNECTION_ON_READONLY_ERROR');
  const rows: readonly (readonly [of: RegExp, remedy: string | DescribeRemedy])[] = [
    [
      /without any password configured|AUTH, but no password is set/,
      (failure) =>
        `the server has no password: leave it out of ${sourceOf(failure)}, or give the server one (requirepass)`,
    ],
    [wrongLogin, loginOf],
    [
      /the credentials file/,
      `name a file with the password, or user:password, in ${of('AUTH_FILE')}`,
    ],
    [
      deniedCommand,
      (failure) =>
        `allow it to the user (ACL SETUSER NAME +${deniedCommand.exec(failure)?.[1]}; worker/docs/operating.md lists what a worker needs), or name another user in ${sourceOf(failure)}`,
    ],
    [
      /\bNOPERM\b.*\bkey/,
      `grant the user access to the keys (ACL SETUSER NAME ~PREFIX*) and set CACHE_KEY_PREFIX to PREFIX, or name another user in ${of(credentialsFrom)}`,
    ],
    [
      /\bREADONLY /,
      closesOnReadonly
        ? `${readonly}=true: the connection is closed, the next one may lead to the master`
        : `set ${readonly}=true, so that the connection is closed and the next one leads to the master`,
    ],
    [
      /\bMASTERDOWN\b/,
      `it is a replica: write the address of its master in ${of('URL')}, or ${of('TYPE')}=sentinel with the addresses of sentinels`,
    ],
    ...(type === 'cluster'
      ? []
      : [
          [/\b(?:MOVED|ASK) \d/, `it is a node of a cluster: write ${of('TYPE')}=cluster`] as const,
        ]),
    [/cluster support disabled/, `it is no node of a cluster: write ${of('TYPE')}=single`],
    [
      /\bCLUSTERDOWN\b/,
      "start the missing masters, which 'redis-cli --cluster check' lists; where cluster-require-full-coverage is no, the others count meanwhile",
    ],
    [/unknown command .?SENTINEL\b/i, `it is no sentinel: write ${of('TYPE')}=single`],
    [
      /unknown command .?(?:INCRBY|EXPIRE)\b/i,
      `is it a sentinel? then write ${of('TYPE')}=sentinel, and the name of the master in front of the addresses in ${of('URL')}`,
    ],
    [/\bOOM\b/, 'give the server more memory: a larger maxmemory'],
    [
      /\bMISCONF\b/,
      'give the server a disk that it can write, or set its stop-writes-on-bgsave-error to no',
    ],
    [/\bLOADING\b/, 'it answers when it has loaded its data'],
    [/\bBUSY\b/, "end the script of another client with 'redis-cli SCRIPT KILL'"],
    [
      /max number of clients/,
      `write a smaller ${of('POOL_SIZE')}, or give the server a larger maxclients`,
    ],
    [/\bNOREPLICAS\b/, 'start its replicas, or set its min-replicas-to-write to 0'],
    [
      /\bDENIED\b.*protected mode/,
      `give the server a password (requirepass) and write it in ${of('AUTH')}, or set its protected-mode to no`,
    ],
    [
      /DB index is out of range/,
      `write a smaller number after the / in ${of('URL')}, or give the server a larger databases`,
    ],
    [
      /SELECT is not allowed in cluster/,
      `a cluster has one database: leave the number out of ${of('URL')}`,
    ],
    [
      /wrong version number|packet length too long/,
      `it speaks no TLS: write ${of('TLS')}=false, or the server's tls-port`,
    ],
    [
      /self.signed certificate|unable to (?:verify|get)\b.*certificate/,
      `name the file of its CA in ${ofBoth('TLS_CACERT')}`,
    ],
    [
      / is not a certificate \(| cannot be used \(/,
      `name files in PEM in ${ofBoth('TLS_CACERT')}, ${ofBoth('TLS_CLIENT_CERT')} and ${ofBoth('TLS_CLIENT_KEY')}`,
    ],
    [
      /does not match certificate's altnames/,
      `write a host that its certificate has in ${of('URL')}, or ${ofBoth('TLS_SKIP_HOSTNAME_VERIFICATION')}=true`,
    ],
    ...(tls
      ? [
          [
            /could not connect within/,
            `${of('TLS')}=true needs the tls-port of the server`,
          ] as const,
        ]
      : []),
  ];
  return (failure) => {
    const remedy = rows.find(([of]) => of.test(failure))?.[1];
    return typeof remedy === 'function' ? remedy(failure) : remedy;
  };
}
