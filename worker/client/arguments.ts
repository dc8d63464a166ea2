// The client's command line: flags with one or two dashes, `-flag value` and `-flag=value`, as the reference accepts
// them (behaviour: client-output). client.ts runs it.
import { commandLine } from '../../shared/command-line.ts';
import { parseDuration } from '../../shared/duration.ts';
import { nearestWord } from '../../shared/nearest-word.ts';
import type { Entry } from '../../shared/rules/rule.ts';

export interface ClientArguments {
  /** The address as a gRPC target. */
  readonly target: string;
  readonly domain: string;
  readonly descriptors: readonly (readonly Entry[])[];
  readonly hitsAddend: number;
  readonly timeoutMs: number;
  readonly json: boolean;
  /** Whether an answer over the limit has its own exit code. */
  readonly failOverLimit: boolean;
  readonly tls: ClientTls | undefined;
  /** The protocol for sending the call's span; undefined for no span. */
  readonly traceProtocol: TraceProtocol | undefined;
}

const traceProtocols = ['http', 'grpc'] as const;
export type TraceProtocol = (typeof traceProtocols)[number];

/** Paths of PEM files; '' for no file. */
export interface ClientTls {
  readonly serverCaFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export type ParsedArguments =
  | { readonly kind: 'call'; readonly arguments: ClientArguments }
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  /** One line that names the flag and the value, and possibly one with a hint. */
  | { readonly kind: 'wrong'; readonly message: string };

interface Flag {
  readonly name: string;
  /** Placeholder of the value in the usage text; '' for a switch. */
  readonly value: string;
  readonly help: string;
}

const flags = [
  {
    name: 'dial_string',
    value: 'address',
    help: 'the worker to ask (default localhost:8081); unix:/path for a socket',
  },
  { name: 'domain', value: 'name', help: 'the domain whose rules apply' },
  {
    name: 'descriptors',
    value: 'key=value,...',
    help: 'one descriptor; repeat the flag for several',
  },
  { name: 'hits_addend', value: 'n', help: 'how many hits to count (default 1)' },
  { name: 'hits', value: 'n', help: 'the same as -hits_addend' },
  { name: 'timeout', value: 'duration', help: 'how long to wait for the answer (default 5s)' },
  { name: 'json', value: '', help: 'print the whole response as one JSON object' },
  {
    name: 'fail-over-limit',
    value: '',
    help: 'end with exit code 3 when the answer is OVER LIMIT',
  },
  { name: 'grpc-use-tls', value: '', help: 'connect with TLS' },
  {
    name: 'grpc-server-ca-file',
    value: 'file',
    help: "the CA of the worker's certificate (default: the system's)",
  },
  { name: 'grpc-cert-file', value: 'file', help: 'the client certificate, with its key' },
  { name: 'grpc-key-file', value: 'file', help: "the client certificate's key" },
  {
    // Misspelled in the reference, and therefore in its users' scripts.
    name: 'oltp-protocol',
    value: 'protocol',
    help: 'send a span of the call over OTLP, by http or grpc',
  },
] as const satisfies readonly Flag[];

type FlagName = (typeof flags)[number]['name'];

const longestTimeoutMs = 24 * 3_600_000;

export const usage = `Usage: ${commandLine('client')} -domain <name> -descriptors <key=value,...> [flags]

Asks a worker whether a request may pass, and counts it. Flags begin with one dash or two.
-version prints the version.

${flags.map((flag) => `  ${`-${flag.name} ${flag.value}`.padEnd(30)} ${flag.help}`).join('\n')}

Exit codes: 0 the worker answered, be it OK or OVER LIMIT; 1 no answer; 2 wrong flags;
3 OVER LIMIT, with -fail-over-limit.
`;

export function parseClientArguments(args: readonly string[]): ParsedArguments {
  const given = readFlags(args);
  if (!given.ok) {
    return given.asked ? { kind: given.asked } : { kind: 'wrong', message: given.message };
  }
  const last = (name: FlagName): string | undefined => given.values.get(name)?.at(-1);

  const descriptors: Entry[][] = [];
  for (const text of given.values.get('descriptors') ?? []) {
    const entries = parseDescriptor(text);
    if (entries === undefined) {
      return invalid('descriptors', text, 'invalid descriptor list', 'key=value,key=value');
    }
    descriptors.push(entries);
  }
  const hits = last('hits_addend') ?? last('hits') ?? '1';
  if (!/^\d{1,10}$/.test(hits) || Number(hits) > 0xffff_ffff) {
    return invalid('hits_addend', hits, 'not a number of hits', '0 to 4294967295');
  }
  const timeout = last('timeout') ?? '5s';
  const duration = parseDuration(timeout);
  if (!duration.ok || duration.ms <= 0 || duration.ms > longestTimeoutMs) {
    const reason = duration.ok ? 'out of range' : duration.reason;
    return invalid('timeout', timeout, reason, 'a duration up to 24h, such as 5s or 500ms');
  }
  const [certFile, keyFile] = [last('grpc-cert-file') ?? '', last('grpc-key-file') ?? ''];
  if ((certFile === '') !== (keyFile === '')) {
    const [present, absent] = certFile === '' ? ['key', 'cert'] : ['cert', 'key'];
    return { kind: 'wrong', message: `-grpc-${present}-file needs -grpc-${absent}-file as well` };
  }
  const serverCaFile = last('grpc-server-ca-file') ?? '';
  const useTls = last('grpc-use-tls') === 'true';
  if (!useTls && certFile + serverCaFile !== '') {
    return { kind: 'wrong', message: 'TLS files need -grpc-use-tls as well' };
  }
  const protocol = last('oltp-protocol') ?? '';
  const traceProtocol = traceProtocols.find((known) => known === protocol);
  if (traceProtocol === undefined && protocol !== '') {
    const reason = 'Invalid otlptrace client protocol';
    return invalid('oltp-protocol', protocol, reason, 'http or grpc');
  }
  return {
    kind: 'call',
    arguments: {
      target: last('dial_string') ?? 'localhost:8081',
      domain: last('domain') ?? '',
      descriptors,
      hitsAddend: Number(hits),
      timeoutMs: duration.ms,
      json: last('json') === 'true',
      failOverLimit: last('fail-over-limit') === 'true',
      tls: useTls ? { serverCaFile, certFile, keyFile } : undefined,
      traceProtocol,
    },
  };
}

/** A key ends at the first `=`, so values may contain more; both may be empty. */
function parseDescriptor(text: string): Entry[] | undefined {
  const pairs = text.split(',').map((pair) => /^([^=]*)=(.*)$/s.exec(pair));
  return pairs.every((pair) => pair !== null)
    ? pairs.map(([, key = '', value = '']) => ({ key, value }))
    : undefined;
}

type ReadFlags =
  | { readonly ok: true; readonly values: ReadonlyMap<FlagName, string[]> }
  | { readonly ok: false; readonly asked?: 'help' | 'version'; readonly message: string };

function readFlags(args: readonly string[]): ReadFlags {
  const values = new Map<FlagName, string[]>();
  const wrong = (message: string): ReadFlags => ({ ok: false, message });
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, text, inline] = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(arg) ?? [];
    if (text === undefined) {
      return wrong(`unexpected argument ${JSON.stringify(arg)}: use flags for all input`);
    }
    if (text === 'h' || text === 'help') return { ok: false, asked: 'help', message: '' };
    if (text === 'version') return { ok: false, asked: 'version', message: '' };
    const flag = flags.find((known) => known.name === text);
    if (flag === undefined) {
      const nearest = nearestWord(
        text,
        flags.map((known) => known.name),
      );
      const hint = nearest === undefined ? '' : `\ndid you mean -${nearest}?`;
      return wrong(`flag provided but not defined: -${text}${hint}`);
    }
    const value = inline ?? (flag.value === '' ? 'true' : rest.shift());
    if (value === undefined) return wrong(`flag needs an argument: -${text}`);
    if (flag.value === '' && value !== 'true' && value !== 'false') {
      return wrong(`invalid boolean value ${JSON.stringify(value)} for -${text}: true or false`);
    }
    values.set(flag.name, [...(values.get(flag.name) ?? []), value]);
  }
  return { ok: true, values };
}

function invalid(flag: FlagName, value: string, reason: string, expected: string): ParsedArguments {
  return {
    kind: 'wrong',
    message: `invalid value ${JSON.stringify(value)} for flag -${flag}: ${reason}\nexpected ${expected}`,
  };
}
