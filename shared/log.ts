// The log of both programs: one line per message, on standard error unless told otherwise. What is
// worth saying, and how often, is left to the callers.

/** From the gravest to the most talkative, as the lines name them. */
export const logLevels = ['panic', 'fatal', 'error', 'warning', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof logLevels)[number];

export const logFormats = ['text', 'json'] as const;
export type LogFormat = (typeof logFormats)[number];

/** Messages go to standard error, one line each. Secrets are never passed in. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warning(message: string): void;
  error(message: string): void;
  /** True when debug messages are written, so that callers can skip building them. */
  readonly isDebug: boolean;
}

export interface LogOptions {
  /** Messages of this level and of graver ones are written. */
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Takes one line, its newline included. */
  readonly write: (line: string) => void;
  /** Milliseconds since the epoch, with a fraction where the clock has one. */
  readonly wallMs?: () => number;
}

/** A debug line may quote a request of any size; nobody reads more than this of it. */
const maxMessageLength = 64 * 1024;

/** Line formats: reference-behaviour 12. */
export function createLog({ level, format, write, wallMs = preciseWallMs }: LogOptions): Log {
  const lowest = logLevels.indexOf(level);
  const toLine = format === 'json' ? toJsonLine : toTextLine;
  const writer = (of: LogLevel): ((message: string) => void) =>
    logLevels.indexOf(of) > lowest
      ? () => {}
      : (message) => write(toLine(of, cutMessage(message), wallMs()));
  return {
    debug: writer('debug'),
    info: writer('info'),
    warning: writer('warning'),
    error: writer('error'),
    isDebug: lowest >= logLevels.indexOf('debug'),
  };
}

function preciseWallMs(): number {
  return performance.timeOrigin + performance.now();
}

function cutMessage(message: string): string {
  const excess = message.length - maxMessageLength;
  return excess > 0
    ? `${message.slice(0, maxMessageLength)}... (${excess} characters more)`
    : message;
}

function toTextLine(level: LogLevel, message: string, wallMs: number): string {
  const text = /^[\w\-./@^+]*$/.test(message) ? message : quote(message);
  return `time="${toRfc3339(wallMs, '')}" level=${level} msg=${text}\n`;
}

function toJsonLine(level: LogLevel, message: string, wallMs: number): string {
  const microseconds = Math.floor((wallMs % 1000) * 1000);
  const fraction = microseconds.toString().padStart(6, '0').replace(/0+$/, '');
  const timestamp = toRfc3339(wallMs, fraction && `.${fraction}`);
  return `{"@message":${quote(message)},"@timestamp":"${timestamp}","level":"${level}"}\n`;
}

/** A JSON string that stays on one line in a terminal too: nothing in it moves the cursor, ends the
 * line or turns the direction of writing. */
function quote(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Local time with its offset (RFC 3339); `fraction` follows the seconds. */
function toRfc3339(wallMs: number, fraction: string): string {
  const date = new Date(wallMs);
  const offset = -date.getTimezoneOffset();
  const local = new Date(wallMs + offset * 60_000).toISOString().slice(0, 19);
  if (offset === 0) return `${local}${fraction}Z`;
  const minutes = Math.abs(offset);
  const twoDigits = (number: number) => number.toString().padStart(2, '0');
  const zone = `${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
  return `${local}${fraction}${offset < 0 ? '-' : '+'}${zone}`;
}
