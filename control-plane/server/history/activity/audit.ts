// Logs every requested change, successful or not, at every reasonable log level and without the content of rules.
import type { Log } from '../../../../shared/log.ts';

export interface AuditedChange {
  /** The name of a token, or `local`. */
  readonly who: string;
  readonly address: string | undefined;
  /** Such as `put domain shop`. */
  readonly what: string;
  readonly requestId: string;
  /** Revision ids; undefined where there is none. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** `done`, or why not. */
  readonly outcome: string;
}

/** Characters kept at each end of a text; the middle is omitted. A request can contain 2.6 MB of names, and its reason
 * is at the end. */
export const maxEndLength = 1024;

export type Audit = (change: AuditedChange) => void;

/** A refusal is a warning: it may be an attack. */
export function createAudit(log: Log): Audit {
  return (given) => {
    const change = shorten(given);
    const { who, what, outcome } = change;
    const message = `audit: ${what}: ${outcome}`;
    const detail = { fields: { ...change }, shown: `audit: ${who}: ${what}: ${outcome}` };
    if (outcome === 'done') log.info(message, detail);
    else log.warning(message, detail);
  };
}

function shorten(change: AuditedChange): AuditedChange {
  const entries = Object.entries(change).map(([name, text]: [string, string | undefined]) => [
    name,
    text === undefined ? undefined : withoutMiddle(text, maxEndLength),
  ]);
  return Object.fromEntries(entries) as AuditedChange;
}

/** The beginning and the end of a longer text, `endLength` characters each: they contain the request and its reason. */
export function withoutMiddle(text: string, endLength: number): string {
  const leftOut = text.length - 2 * endLength;
  if (leftOut <= 0) return text;
  const end = text.slice(-endLength);
  return `${text.slice(0, endLength)} ... (${leftOut} characters left out) ... ${end}`;
}
