// Logs every requested change, successful or not, at every sensible log level and without the content of
// rules.
import type { Log } from '../../shared/log.ts';

export interface AuditedChange {
  /** The name of a token, or `local`. */
  readonly who: string;
  readonly address: string | undefined;
  /** Such as `put domain shop`. */
  readonly what: string;
  readonly requestId: string;
  /** Revisions; undefined where there is none. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** `done`, or why not. */
  readonly outcome: string;
}

export type Audit = (change: AuditedChange) => void;

/** A refusal is a warning: it may be an attack. */
export function createAudit(log: Log): Audit {
  return (change) => {
    const { who, what, outcome } = change;
    const message = `audit: ${what}: ${outcome}`;
    const detail = { fields: { ...change }, shown: `audit: ${who}: ${what}: ${outcome}` };
    if (outcome === 'done') log.info(message, detail);
    else log.warning(message, detail);
  };
}
