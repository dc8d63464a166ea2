// The options by which commands find the admin API and authenticate.
import { createSecureContext } from 'node:tls';
import type { Command } from 'commander';
import type { Environment } from '../../../shared/settings/setting.ts';
import { maskAddress } from '../../../shared/settings/shown-value.ts';
import { withTrustedAuthorities } from '../../../shared/tls.ts';
import { type AdminClient, createAdminClient } from '../../admin-client.ts';
import { checkToken, readTokenFile, type TokenResult } from '../../token-file.ts';
import { readTlsOptions, type TlsOptions } from '../tls-options.ts';

export interface AdminOptions extends AccessOptions {
  readonly adminUrl?: string;
}

/** Credentials, and trusted authorities. */
export interface AccessOptions extends TlsOptions {
  readonly tokenFile?: string;
}

const defaultUrl = 'http://127.0.0.1:18001';

export function addAdminOptions(command: Command): Command {
  const text = `the admin API (RATELANE_ADMIN_URL; default: ${defaultUrl})`;
  return addAccessOptions(command.option('--admin-url <url>', text));
}

/** For a command that queries several control planes: `--admin-url` is an array then. */
export function addAdminOptionsForSeveral(command: Command): Command {
  const text = `the admin API; repeat it for several control planes (RATELANE_ADMIN_URL for one; default: ${defaultUrl})`;
  const collect = (url: string, earlier: readonly string[] = []) => [...earlier, url];
  return addAccessOptions(command.option('--admin-url <url>', text, collect));
}

function addAccessOptions(command: Command): Command {
  return command
    .option(
      '--token-file <path>',
      'a file with the token to send (RATELANE_ADMIN_TOKEN_FILE, or the token itself in RATELANE_ADMIN_TOKEN)',
    )
    .option('--ca <path>', 'authorities to trust besides those of this system (RATELANE_ADMIN_CA)')
    .option('--cert <path>', 'a certificate to present, with --key')
    .option('--key <path>', 'its private key')
    .option('--json', 'print one JSON object');
}

/** The first option that says how to reach a control plane. */
export function givenAdminOption(command: Command): string | undefined {
  const names = ['adminUrl', 'tokenFile', 'ca', 'cert', 'key'];
  const isGiven = (name: string) => command.getOptionValueSource(name) === 'cli';
  return command.options.find(
    (option) => names.includes(option.attributeName()) && isGiven(option.attributeName()),
  )?.long;
}

export type AdminClientResult =
  | { readonly ok: true; readonly client: AdminClient }
  /** A sentence for people, without a token in it. */
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
      ? createSecureContext({ ca: withTrustedAuthorities(ca), cert, key })
      : undefined;
  return { ok: true, client: createAdminClient({ url, token: token?.value, secureContext }) };
}

/** One client for each different URL, or the first mistake. */
export async function openAdminClients(
  urls: readonly string[] | undefined,
  access: AccessOptions,
  environment: Environment,
): Promise<
  | { readonly ok: true; readonly clients: readonly AdminClient[] }
  | { readonly ok: false; readonly message: string }
> {
  const clients = new Map<string, AdminClient>();
  for (const adminUrl of urls ?? [undefined]) {
    const opened = await openAdminClient({ ...access, ...(adminUrl && { adminUrl }) }, environment);
    if (!opened.ok) return opened;
    clients.set(opened.client.url, opened.client);
  }
  return { ok: true, clients: [...clients.values()] };
}

async function readToken(
  { tokenFile }: AccessOptions,
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
