// Shows the text of a setting to people: quoted, shortened, and without secrets.
import type { Setting } from './setting.ts';

const longestShown = 100;
const mask = '*****';
/** Names of parameters of an address, such as `private_token`. */
export const secretParameter = /user(?:name)?|auth|pass|token|key|secret|signature|credential/i;

/** `NAME="text"`, or with the secret parts of the text masked. */
export function showGiven(setting: Setting<unknown>, name: string, text: string): string {
  const shown = maskSecret(setting, text);
  const cut = shown.length > longestShown ? `${shown.slice(0, longestShown)}...` : shown;
  return `${name}=${JSON.stringify(cut)}`;
}

/** The text as the setting's secrecy allows it; an empty text stays empty. */
export function maskSecret(setting: Setting<unknown>, text: string): string {
  if (text === '' || setting.secret === 'no') return text;
  return setting.secret === 'whole' ? mask : maskCredentials(text);
}

/**
 * An address, or a comma-separated list of them, with `*****` in place of user names, passwords and
 * tokens: `redis://*****@host:6379` (behaviour: masked-secrets).
 */
export function maskCredentials(address: string): string {
  return address
    .split(/,(?=[a-z]+:\/\/)/)
    .map((item) =>
      item
        .replace(/^([a-z]+:\/\/)?.*@/is, `$1${mask}@`)
        .replace(/([?&][^=&#,]*=)([^&#,]*)/g, (item, name: string) =>
          secretParameter.test(name) ? `${name}${mask}` : item,
        ),
    )
    .join(',');
}
