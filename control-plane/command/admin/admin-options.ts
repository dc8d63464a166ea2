// The options by which commands find the admin API and show who they are.
import type { Command } from 'commander';
import type { Environment } from '../../../shared/settings/setting.ts';
import { readTlsFiles } from '../../../shared/tls.ts';
import { checkToken, readTokenFile, type TokenResult } from '../token.ts';
import { type AdminClient, createAdminClient } from './admin-client.ts';

export interface AdminOptions {
  readonly adminUrl?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

const defaultUrl = 'http://127.0.0.1:18001';

export function addAdminOptions(command: Command): Command {
  return command
    .option('--admin-url <url>', `the admin API (RATELANE_ADMIN_URL; default: ${defaultUrl})`)
    .option(
      '--token-file <path>',
      'a file with the token to send (RATELANE_ADMIN_TOKEN_FILE, or the token itself in RATELANE_ADMIN_TOKEN)',
    )
    .option('--ca <path>', 'authorities to trust besides those of this system')
    .option('--cert <path>', 'a certificate to present, with --key')
    .option('--key <path>', 'its private key')
    .option('--json', 'print one JSON object');
}

export type AdminClientResult =
  | { readonly ok: true; readonly client: AdminClient }
  /** For people, without a token in it. */
  | { readonly ok: false; readonly message: string };

export async function openAdminClient(
  options: AdminOptions,
  environment: Environment,
): Promise<AdminClientResult> {
  const given = options.adminUrl ?? environment['RATELANE_ADMIN_URL'] ?? defaultUrl;
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username + url.password !== '') {
    const shown = JSON.stringify(given.replace(/\/\/.*@/, '//*****@'));
    return bad(
      `the admin URL ${shown} cannot be used; write http://host:port or https://host:port`,
    );
  }
  if ((options.cert === undefined) !== (options.key === undefined)) {
    return bad('--cert and --key go together');
  }
  const tls = await readTlsFiles({ ca: options.ca, cert: options.cert, key: options.key });
  if (!tls.ok) return bad(tls.problem);
  const token = await readToken(options, environment);
  if (token?.ok === false) return token;
  return { ok: true, client: createAdminClient({ url, token: token?.value, tls: tls.material }) };
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
