// The options of commands that connect to the admin API and authenticate.
import { createSecureContext } from 'node:tls';
import type { Command } from 'commander';
import type { Environment } from '../../../shared/settings/setting.ts';
import { maskAddress } from '../../../shared/settings/shown-value.ts';
import { withTrustedCas } from '../../../shared/tls.ts';
import { type AdminClient, createAdminClient } from '../../server/admin-client.ts';
import { checkToken, readTokenFile, type TokenResult } from '../../server/token-file.ts';
import { readTlsOptions, type TlsOptions } from '../tls-options.ts';

export interface AdminOptions extends TlsOptions {
  readonly adminUrl?: string;
  readonly tokenFile?: string;
}

const defaultUrl = 'http://127.0.0.1:18001';

export function addAdminOptions(command: Command): Command {
  return command
    .option('--admin-url <url>', `the admin API (RATELANE_ADMIN_URL; default: ${defaultUrl})`)
    .option(
      '--token-file <path>',
      'a file with the token to send (RATELANE_ADMIN_TOKEN_FILE, or the token itself in RATELANE_ADMIN_TOKEN)',
    )
    .option('--ca <path>', 'CAs to trust besides those of this system (RATELANE_ADMIN_CA)')
    .option('--cert <path>', 'a client certificate, with --key')
    .option('--key <path>', 'its private key')
    .option('--json', 'print one JSON object');
}

/** The first given option for access to a control plane. */
export function givenAdminOption(command: Command): string | undefined {
  const names = ['adminUrl', 'tokenFile', 'ca', 'cert', 'key'];
  const isGiven = (name: string) => command.getOptionValueSource(name) === 'cli';
  return command.options.find(
    (option) => names.includes(option.attributeName()) && isGiven(option.attributeName()),
  )?.long;
}

export type AdminClientResult =
  | { readonly ok: true; readonly client: AdminClient }
  /** A human-readable sentence that contains no token. */
  | { readonly ok: false; readonly message: string };

export async function openAdminClient(
  options: AdminOptions,
  environment: Environment,
): Promise<AdminClientResult> {
  const given = options.adminUrl ?? environment['RATELANE_ADMIN_URL'] ?? defaultUrl;
  const url = URL.parse(given);
  const isPlain = url?.username === '' && url.password === '' && url.search + url.hash === '';
  if (url === null || !/^https?:$/.test(url.protocol) || !isPlain) {
    const shown = JSON.stringify(maskAddress(given));
    return bad(
      `the admin URL ${shown} cannot be used; write http://host:port or https://host:port, without a user or parameters`,
    );
  }
  const tls = await readTlsOptions({
    ...options,
    ca: options.ca ?? environment['RATELANE_ADMIN_CA'],
  });
  if (!tls.ok) return bad(tls.problem);
  const token = await readToken(options, environment);
  if (token?.ok === false) return token;
  const { ca, cert, key } = tls.material;
  const secureContext =
    url.protocol === 'https:'
      ? createSecureContext({ ca: withTrustedCas(ca), cert, key })
      : undefined;
  return { ok: true, client: createAdminClient({ url, token: token?.value, secureContext }) };
}

async function readToken(
  { tokenFile }: AdminOptions,
  environment: Environment,
): Promise<TokenResult | undefined> {
  const path = tokenFile ?? environment['RATELANE_ADMIN_TOKEN_FILE'];
  if (path !== undefined) return readTokenFile(path);
  const value = environment['RATELANE_ADMIN_TOKEN'];
  return value === undefined ? undefined : checkToken(value, 'RATELANE_ADMIN_TOKEN');
}

function bad(message: string): { readonly ok: false; readonly message: string } {
  return { ok: false, message };
}
