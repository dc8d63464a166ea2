// Shows the text of a setting or an argument: quoted, shortened, and without secrets. Of an address only the parsed
// host and port are shown: a secret in an unexpected form is never part of them.
import type { Setting } from './setting.ts';

const longestShown = 100;
export const mask = '*****';

/** `NAME="text"`, with `*****` in place of possible secrets. */
export function showGiven(setting: Setting<unknown>, name: string, text: string): string {
  const shown = maskSecret(setting, text);
  const cut = shown.length > longestShown ? `${shown.slice(0, longestShown)}...` : shown;
  return `${name}=${JSON.stringify(cut)}`;
}

/** The text as far as the setting's secrecy allows; an empty text stays empty. */
export function maskSecret(setting: Setting<unknown>, text: string): string {
  if (text === '' || setting.secret === 'whole') return text && mask;
  if (setting.secret === 'file') return maskFile(text);
  // The value may have been intended for another setting.
  return setting.secret === 'url' || hasCredentials(text) ? maskAddress(text) : text;
}

/**
 * A path has a folder in front, or an extension: a text with neither may be a password or a token, as may a text with
 * other characters.
 */
const pathForm = /^(?:\.{0,2}(?:\/[\w.@-]+)+|[\w/-]+\.[a-z]{2,5})$/;

/** The path of a file with a secret. */
export function maskFile(path: string): string {
  return pathForm.test(path) ? path : mask;
}

const secretWord =
  /(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|auth(?:orization)?|credentials?|signature|api.?key|access.?key|account.?key|private.?key)["']?\s*[=:]\s*\S/i;
/** A user in a URL, before its host or in place of it. */
const userOfUrl = /:\/\/[^\s/]*@|:\/\/[^\s/?#[:]*:(?!\d*(?:[/?#,]|$))/;
/** How often escapes within escapes are decoded. */
const maxDecodings = 3;

/** Whether the text seems to contain a password or a token. */
export function hasCredentials(text: string): boolean {
  let form = text.replace(/\s+/g, '');
  for (let i = 0; i <= maxDecodings; i++) {
    if (userOfUrl.test(form) || hasUser(form) || secretWord.test(form)) return true;
    const decoded = form.replace(/%[\da-f]{2}/gi, (code) =>
      String.fromCharCode(Number.parseInt(code.slice(1), 16)),
    );
    if (decoded === form) return false;
    form = decoded;
  }
  return true;
}

/** `user:password@host` without a scheme. */
function hasUser(form: string): boolean {
  const parts = form.split('@');
  return parts.some((part, at) => part.includes(':') && /^[\w[]/.test(parts[at + 1] ?? ''));
}

/**
 * An address, or a comma-separated list of them, as far as it could be parsed; `*****` stands for the rest:
 * `redis://*****@host:6379` (behaviour: masked-secrets). Nothing is shown from the first unparsed item of a list on: a
 * comma may be part of a password.
 */
export function maskAddress(text: string): string {
  const trimmed = text.trim();
  if (trimmed.includes('@')) {
    const items = trimmed.split(/,(?=[a-z]+:\/\/)/i).map((item) => showItem(item));
    const areUnderstood = items.every((item) => item?.includes('@'));
    return areUnderstood ? items.join(',') : mask;
  }
  const shown: string[] = [];
  const items = trimmed.split(',').map((item) => item.trim());
  for (const [index, item] of items.entries()) {
    const isMasterName =
      index === 0 && /^[\w.-]{1,64}$/.test(item) && showItem(items[1] ?? '') !== undefined;
    const part = isMasterName ? item : showItem(item);
    if (part === undefined) return [...shown, mask].join(',');
    shown.push(part);
  }
  return shown.join(',');
}

/** Masks each of `args` that has credentials wherever it occurs in `text`, an error about these arguments. */
export function maskArguments(text: string, args: readonly string[]): string {
  const given = args.flatMap((arg) => [arg, arg.replace(/^--?[\w-]+=/, '')]);
  const secret = given.filter(hasCredentials).sort((a, b) => a.length - b.length);
  // The shorter ones first: an argument's part after its flag is masked without the flag.
  return secret.reduce(
    (shown, arg) =>
      shown
        .replaceAll(arg, () => maskAddress(arg))
        .replaceAll(JSON.stringify(arg).slice(1, -1), () => maskAddress(arg)),
    text,
  );
}

const portForm = /^(\[[\da-f:.]+\]|[\w.-]*):(\d{1,5})$/i;
/** Without a port a single word could be anything. */
const hostForm = /^(?:localhost|\[[\da-f:.]+\]|[a-z\d-]{1,63}(?:\.[a-z\d-]{1,63})+)$/;
const nameForm = /^(?:dns|ipv4|ipv6):(?:\/{2,3})?/;
const urlForm = /^([a-z][a-z\d+.-]{0,15}:\/\/)?([^\s@/?#,]*@)?([^\s@/?#,]+)([/?#].*)?$/is;

/** One address; undefined when it could not be parsed. */
function showItem(item: string): string | undefined {
  if (/^(?:unix:(?:\/\/)?)?\/[\w./-]*$/.test(item)) return item;
  const [prefix = ''] = nameForm.exec(item) ?? [];
  const [, scheme = '', user, host = '', rest] = urlForm.exec(item.slice(prefix.length)) ?? [];
  if (!portForm.test(host) && !hostForm.test(host)) return undefined;
  if (scheme === '' && rest !== undefined) return undefined;
  const isDatabase = rest !== undefined && /^\/\d{0,3}$/.test(rest);
  const shownRest = isDatabase || rest === undefined ? (rest ?? '') : `${rest.charAt(0)}${mask}`;
  return `${prefix}${scheme}${user === undefined ? '' : `${mask}@`}${host}${shownRest}`;
}
