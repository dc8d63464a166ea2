// Whether a server executes scripts, which sliding windows and token buckets need: a proxy or an access list may refuse
// only them. A refusal is logged once, and so is its end.
import { AppError } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { LimiterAlgorithm } from '../../../shared/rules/limit-shape.ts';

/** The error of a decision that needs a script. */
export class NoScripts extends AppError {
  constructor(message: string) {
    super('store', message);
  }
}

export interface ScriptSupport {
  /**
   * The error for a limiter's counter if the server's error means that it refuses scripts; otherwise undefined. `key`
   * is shown.
   */
  refused(algorithm: LimiterAlgorithm, key: string, reply: string): NoScripts | undefined;
  /** Call it when a script was executed. */
  worked(): void;
  /** A line for the debug page; undefined if scripts are not refused. */
  describe(): string | undefined;
}

/** The refusal of a server or proxy that lacks a command, or has it disabled. */
const refusal = /unknown command|unsupported|not (?:allowed|supported)|disabled/i;

export function createScriptSupport(name: string, addressSetting: string, log: Log): ScriptSupport {
  /** The error with which the server refused. */
  let refusedWith: string | undefined;
  return {
    refused(algorithm, key, reply) {
      if (!isRefusal(reply)) return undefined;
      const remedy = reply.startsWith('NOPERM')
        ? 'allow the user to run scripts (ACL SETUSER NAME +eval +evalsha), or set algorithm: fixed_window'
        : `set algorithm: fixed_window, or name a server with scripts in ${addressSetting}`;
      const words = reply.replace(/, with args beginning with:.*$/s, '');
      if (refusedWith === undefined) {
        log.error(
          `${name}: scripts are refused (EVALSHA): ${words}; decisions on sliding windows and token buckets fail, all others continue; ${remedy}`,
        );
      }
      refusedWith = words;
      return new NoScripts(
        `${name}: no scripts (EVALSHA), which ${algorithm} needs for ${key}: ${words}; ${remedy}`,
      );
    },
    worked() {
      if (refusedWith === undefined) return;
      refusedWith = undefined;
      log.notice(`${name}: scripts are executed again`);
    },
    describe: () =>
      refusedWith === undefined
        ? undefined
        : `no scripts (EVALSHA): ${refusedWith}; sliding windows and token buckets fail`,
  };
}

/**
 * Decides by the error's code, its first word: a server that is full (OOM), cannot save (MISCONF) or is a replica
 * (READONLY) fails all counters, although its text may read like a refusal. Proxies may write no code.
 */
function isRefusal(reply: string): boolean {
  const [code = 'ERR'] = /^[A-Z]+(?= )/.exec(reply) ?? [];
  // The refusal must concern a command, not a key.
  if (code === 'NOPERM') return /\bcommand\b/.test(reply);
  // Redis 6 and older wrap the errors of scripts that they did execute.
  if (reply.startsWith('ERR Error running script')) return false;
  return code === 'ERR' && refusal.test(reply);
}
