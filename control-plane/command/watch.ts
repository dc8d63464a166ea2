// `watch`: a client of a management server that shows the resources a worker would receive, and accepts or refuses
// them; for debugging a control plane.
import type { AddCommand, CommandFrame } from './command-frame.ts';
import type { WatchedResponse } from './watch/discovery-watch.ts';

interface WatchOptions {
  readonly xds: string;
  readonly nodeId: string;
  readonly cluster: string;
  readonly metadata?: readonly string[];
  readonly nack?: string | true;
  readonly once?: boolean;
  readonly tokenFile?: string;
  readonly tls?: boolean;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly json?: boolean;
}

export const addWatch: AddCommand = (command, frame) => {
  command
    .description(
      'Asks a management server for rate limits as a worker does (state of the world), and prints each response until the server ends the stream or a signal ends the command.',
    )
    .option('--xds <host:port>', 'the management server', '127.0.0.1:18000')
    .option('--node-id <id>', 'the node to ask for', 'ratelane-watch')
    .option('--cluster <name>', 'its cluster', '')
    .option('--metadata <key=value...>', 'its metadata')
    .option('--nack [text]', 'refuse each response, with this text')
    .option('--once', 'end after the first response; fail when none comes within 10s')
    .option('--token-file <path>', 'a file with the token to send')
    .option('--tls', 'use TLS')
    .option('--ca <path>', 'with --tls: CAs to trust besides those of this system')
    .option('--cert <path>', 'with --tls: a client certificate, with --key')
    .option('--key <path>', 'with --tls: its private key')
    .option('--json', 'print one JSON object per line for each response')
    .addHelpText(
      'after',
      `
Exit codes:
  0  ended by --once or a signal
  2  wrong usage, or the server cannot be reached or ended the stream`,
    )
    .action(async (options: WatchOptions) => {
      const failure = await watch(frame, options);
      if (failure !== undefined) frame.fail(failure);
    });
};

/** Returns why the watch ended, unless that was requested. */
async function watch({ io }: CommandFrame, options: WatchOptions): Promise<string | undefined> {
  const { openDiscoveryWatch } = await import('./watch/discovery-watch.ts');
  const { once = false, nack, json = false } = options;
  const refusal = nack === true ? 'refused by the watch command' : nack;
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.on('SIGINT', stop).on('SIGTERM', stop);
  try {
    return await openDiscoveryWatch({
      ...options,
      metadata: toMetadata(options.metadata ?? []),
      refusal,
      once,
      signal: stopping.signal,
      clock: io.clock,
      onResponse: (response) => io.write(json ? toJson(response) : toText(response)),
    });
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

function toMetadata(items: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    items.map((item) => {
      const at = item.indexOf('=');
      return at < 0 ? [item, ''] : [item.slice(0, at), item.slice(at + 1)];
    }),
  );
}

function toJson(response: WatchedResponse): string {
  const { atMs, ...rest } = response;
  return `${JSON.stringify({ at: new Date(atMs).toISOString(), ...rest })}\n`;
}

function toText({ atMs, version, nonce, resources, answer }: WatchedResponse): string {
  const time = new Date(atMs).toISOString();
  const lines = [
    `${time}  version ${version}  nonce ${nonce}  ${resources.length} resources  ${answer}`,
    ...resources.map(
      ({ name, domain, rules, bytes, problem }) =>
        `  ${name || '(no name)'}  ${problem ?? `domain ${domain}, ${rules} rules, ${bytes} bytes`}`,
    ),
  ];
  // Names come from another program.
  return lines.map((line) => `${line.replaceAll(/[\p{Cc}\p{Cf}]/gu, '?')}\n`).join('');
}
