// Tokens that replace a password: signed locally with the cloud credentials of this process, and shared by all
// connections while fresh (behaviour: cloud-iam). The libraries for this are only loaded when it is used.
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { ReadCredentials } from './credentials.ts';

/** The lifetime stated in the signature. */
const validSeconds = 900;
/** How long a token is used for new connections. */
const reuseMs = 600_000;
/** The credentials used for signing must stay valid for this long. */
const credentialsMarginMs = 60_000;

export interface CloudIamOptions {
  /** The name of a serverless cache, or the id of a replication group; never a host name. */
  readonly cacheName: string;
  readonly userId: string;
  readonly serverless: boolean;
  readonly region: string;
}

export interface CloudCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

export interface CloudIamDeps {
  readonly clock: Clock;
  /** Region of the cache. */
  readonly readRegion: () => Promise<string>;
  /** The credentials of the process: from its environment, files, container or machine. */
  readonly readCloudCredentials: () => Promise<CloudCredentials>;
}

/** Has its times on both clocks: a token signed before the clock was set may be invalid now. */
interface SignedToken {
  readonly token: string;
  readonly signedMs: number;
  readonly reusableUntilMs: number;
  /** On the monotonic clock. */
  readonly oldFromMs: number;
}

/** Rejects when there are no credentials; the error contains nothing of them. */
export function createCloudIamCredentials(
  options: Omit<CloudIamOptions, 'region'>,
  { clock, readRegion, readCloudCredentials }: CloudIamDeps,
): ReadCredentials {
  let signed: SignedToken | undefined;
  /** Shared by connections that open at the same time. */
  let signing: Promise<string> | undefined;

  async function sign(): Promise<string> {
    const region = await readRegion();
    const credentials = await readCloudCredentials().catch((error: unknown) => {
      throw new AppError('store', `no cloud credentials to sign a token with: ${errorText(error)}`);
    });
    const nowMs = clock.wallMs();
    const expiresMs = credentials.expiration?.getTime() ?? Number.POSITIVE_INFINITY;
    signed = {
      token: await signToken({ ...options, region }, credentials, new Date(nowMs)),
      signedMs: nowMs,
      reusableUntilMs: Math.min(nowMs + reuseMs, expiresMs - credentialsMarginMs),
      oldFromMs: clock.monotonicMs() + reuseMs,
    };
    return signed.token;
  }

  function isReusable({ signedMs, reusableUntilMs, oldFromMs }: SignedToken): boolean {
    const nowMs = clock.wallMs();
    return nowMs >= signedMs && nowMs < reusableUntilMs && clock.monotonicMs() < oldFromMs;
  }

  return async () => {
    if (signed !== undefined && isReusable(signed)) {
      return { username: options.userId, password: signed.token };
    }
    signing ??= sign().finally(() => {
      signing = undefined;
    });
    return { username: options.userId, password: await signing };
  };
}

/** The presigned URL of the "connect" action, without its scheme. */
export async function signToken(
  { cacheName, userId, serverless, region }: CloudIamOptions,
  credentials: CloudCredentials,
  date: Date,
): Promise<string> {
  const [{ SignatureV4 }, { Sha256 }] = await loadOptional(() =>
    Promise.all([import('@smithy/signature-v4'), import('@aws-crypto/sha256-js')]),
  );
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const host = cacheName.toLowerCase();
  const signer = new SignatureV4({
    service: 'elasticache',
    region,
    sha256: Sha256,
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
  });
  const { query } = await signer.presign(
    {
      method: 'GET',
      protocol: 'https:',
      hostname: host,
      path: '/',
      headers: { host },
      query: {
        Action: 'connect',
        User: userId,
        ...(serverless && { ResourceType: 'ServerlessCache' }),
      },
    },
    { expiresIn: validSeconds, signingDate: date },
  );
  const items = Object.entries(query ?? {}).map(
    ([name, value]) => `${escapeText(name)}=${escapeText(String(value))}`,
  );
  return `${host}/?${items.join('&')}`;
}

/** The encoding required for signatures: everything but letters, digits and `-._~` is escaped. */
function escapeText(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The credentials of this process, from wherever its host provides them. */
export function createCloudCredentialsReader(
  readRegion: () => Promise<string>,
): () => Promise<CloudCredentials> {
  let provider: (() => Promise<CloudCredentials>) | undefined;
  return async () => {
    if (provider === undefined) {
      const { fromNodeProviderChain } = await loadOptional(
        () => import('@aws-sdk/credential-providers'),
      );
      provider = fromNodeProviderChain({ clientConfig: { region: readRegion } });
    }
    return provider();
  };
}

/** Loads packages that only workers with such tokens need, and that may not be installed. */
export async function loadOptional<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  try {
    return await load();
  } catch (error) {
    const [, name] = /Cannot find package '([^']+)'/.exec(errorText(error)) ?? [];
    if (name === undefined) throw error;
    const hint = `install it, or install Ratelane without --omit=optional`;
    throw new AppError('store', `tokens need the package ${name}, which is not installed: ${hint}`);
  }
}
