// The headers that an application sets on its answer: each is sent, or is an error with its name.

/** Of the connection, not of the answer: the server sets them. */
const ofTheServer = 'transfer-encoding';

interface Changing {
  set(name: string, value: string): void;
  append(name: string, value: string): void;
}

/** Its types have fields where it has methods, which a subclass could not replace. */
const Base = Headers as new (
  pairs?: readonly (readonly [string, string])[],
) => Omit<Headers, keyof Changing> & Changing;

/** `Headers` whose errors name the header, and whose locations are percent-encoded. */
export class DraftHeaders extends Base {
  override set(name: string, value: string): void {
    try {
      super.set(name, toSendable(name, value));
    } catch (cause) {
      throw unsendable(name, cause);
    }
  }

  override append(name: string, value: string): void {
    try {
      super.append(name, toSendable(name, value));
    } catch (cause) {
      throw unsendable(name, cause);
    }
  }
}

export function toDraftHeaders(given: Readonly<Record<string, string>>): DraftHeaders {
  const headers = new DraftHeaders();
  for (const [name, value] of Object.entries(given)) headers.append(name, value);
  return headers;
}

function unsendable(name: string, cause: unknown): TypeError {
  const { message } = cause as Error;
  return new TypeError(`the header ${JSON.stringify(name)} cannot be sent: ${message}`, { cause });
}

function toSendable(name: string, value: string): string {
  const known = name.toLowerCase();
  if (known === ofTheServer) throw new TypeError('the server sets it');
  return known === 'location' || known === 'content-location' ? encodeLocation(value) : value;
}

/** Characters that a URI does not have become UTF-8 in percent encoding; what is encoded already stays. Control
 * characters stay too, so that they are refused. */
function encodeLocation(location: string): string {
  return String(location)
    .toWellFormed()
    .replace(/[ "<>\\^`{|}]|[^\0-\x7f]+/g, encodeURIComponent);
}
