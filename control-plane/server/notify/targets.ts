// The targets of notifications: a URL, which receives signed JSON, and a Git host, which receives the status of a
// commit.
import { AppError, errorText } from '../../../shared/errors.ts';
import { maskFile } from '../../../shared/settings/shown-value.ts';
import { readSecretFile } from '../../../shared/small-file.ts';
import type { NotifySettings } from '../settings/notify.ts';
import { signBody } from '../store/webhook.ts';
import { readTokenFile } from '../token-file.ts';
import type { Notification } from './notification.ts';

export interface NotifyRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface NotifyTarget {
  /** The name in metrics. */
  readonly name: 'url' | 'commit_status';
  /** The address for messages, without any part that may be a secret. */
  readonly shown: string;
  /** Checks whether the secret can be read: rejects as `toRequest` does. */
  check(): Promise<void>;
  /** Reads the secret. Rejects with an AppError that does not quote it. */
  toRequest(notification: Notification): Promise<NotifyRequest>;
}

const maxSecretBytes = 4096;

export function toTargets({ url, secretFile, commitStatus }: NotifySettings): NotifyTarget[] {
  const targets: NotifyTarget[] = [];
  if (url !== undefined) targets.push(createUrlTarget(url, secretFile));
  if (commitStatus !== undefined) targets.push(createStatusTarget(commitStatus));
  return targets;
}

function createUrlTarget(url: URL, secretFile: string | undefined): NotifyTarget {
  return {
    name: 'url',
    // The path of a chat's incoming webhook is its secret.
    shown: `the notification URL at ${url.origin}`,
    check: async () => void (await readSecret(secretFile)),
    async toRequest(notification) {
      const body = JSON.stringify(notification);
      const secret = await readSecret(secretFile);
      const headers = {
        'content-type': 'application/json',
        'x-ratelane-event': notification.event,
        'x-ratelane-delivery': notification.delivery,
        ...(secret !== undefined && { 'x-ratelane-signature-256': signBody(body, secret) }),
      };
      return { url, headers, body };
    },
  };
}

/** Undefined without a file. */
async function readSecret(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const setting = '--notify-secret-file';
  let text: string;
  try {
    text = (await readSecretFile(path, maxSecretBytes)).trim();
  } catch (error) {
    throw new AppError('cannot_start', `${setting} cannot be read: ${errorText(error)}`);
  }
  if (text !== '') return text;
  throw new AppError('cannot_start', `${setting}: ${maskFile(path)} does not hold a secret`);
}

const states = {
  'in-force': 'success',
  'taken-back': 'failure',
  'held-back': 'pending',
  invalid: 'failure',
} as const satisfies Record<Notification['event'], string>;

/** In characters: GitHub accepts no more. */
const maxDescription = 140;

function createStatusTarget({ url, tokenFile }: { url: URL; tokenFile: string }): NotifyTarget {
  return {
    name: 'commit_status',
    shown: `the commit statuses at ${url.origin}`,
    check: async () => void (await readToken(tokenFile)),
    async toRequest(notification) {
      const token = await readToken(tokenFile);
      const { event, revision, reason, link } = notification;
      const word = event.replace('-', ' ');
      // The reason of a held-back revision already begins with this word.
      const text = reason?.startsWith(`${word}: `)
        ? reason
        : [word, reason].filter(Boolean).join(': ');
      const description =
        text.length <= maxDescription ? text : `${text.slice(0, maxDescription - 1)}…`;
      const status = {
        state: states[event],
        context: 'ratelane',
        description: description.toWellFormed(),
        ...(link !== null && { target_url: link }),
      };
      return {
        url: new URL(`${url.href.replace(/\/$/, '')}/statuses/${revision.id}`),
        headers: {
          accept: 'application/vnd.github+json',
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'user-agent': 'ratelane',
        },
        body: JSON.stringify(status),
      };
    },
  };
}

async function readToken(path: string): Promise<string> {
  const token = await readTokenFile(path);
  if (token.ok) return token.value;
  throw new AppError('cannot_start', `commit statuses: ${token.message}`);
}
