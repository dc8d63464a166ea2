// The log of both programs: one line per message, in the formats of the reference service.
// shared/repeated-log.ts limits repeats.
import { styleText } from 'node:util';
import { loadLibrary } from './library.ts';
import { trimEnd } from './trim-end.ts';

/** The levels from the most severe to the most detailed, by the names that lines have. */
export const logLevels = ['panic', 'fatal', 'error', 'warning', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof logLevels)[number];

/** `terminal` is for operators: short, and messages keep their line breaks. */
export const logFormats = ['text', 'json', 'terminal'] as const;
export type LogFormat = (typeof logFormats)[number];

/** One line per message. Callers never pass secrets. */
export interface Log {
  debug(message: string): void;
  info(message: string, detail?: LogDetail): void;
  /**
   * A success that operators want to see at the default level: marked info, written wherever warnings are.
   */
  notice(message: string): void;
  warning(message: string, detail?: LogDetail): void;
  error(message: string, detail?: LogDetail): void;
  /** True when debug messages are written, so that callers can skip building them. */
  readonly isDebug: boolean;
}

/** Writes nothing. */
export const silentLog: Log = {
  ...{ debug() {}, info() {}, notice() {}, warning() {}, error() {} },
  isDebug: false,
};

/** The details of a line, beside its message. */
export interface LogDetail {
  /**
   * Fields for programs: each defined value becomes a field of the line, objects as JSON. Not written in the format
   * `terminal`.
   */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Human-readable text, which replaces the message in the format `terminal`; may have several lines. */
  readonly shown: string;
}

export interface LogOptions {
  /** Messages of this level and of more severe ones are written. */
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Writes one line, which ends with its newline. */
  readonly write: (line: string) => void;
  /** Milliseconds since the epoch, with a fraction where the clock has one; may jump in both directions. */
  readonly wallMs?: () => number;
}

/** Longer lines are cut at this length: a debug line may quote a request of any size. */
const maxMessageLength = 64 * 1024;

/** How a line is written (behaviour: log-lines). */
export function createLog({ level, format, write, wallMs = () => Date.now() }: LogOptions): Log {
  const isWritten = (asked: LogLevel) => logLevels.indexOf(asked) <= logLevels.indexOf(level);
  const writeLine =
    format === 'json'
      ? createJsonWriter(write, wallMs)
      : (line: Line) => write(toLine[format](line, toRfc3339(wallMs(), '')));
  const at = (lineLevel: LogLevel, least = lineLevel) =>
    isWritten(least)
      ? (message: string, detail?: LogDetail) =>
          writeLine({ level: lineLevel, message: cutMessage(message), detail })
      : () => {};
  return {
    debug: at('debug'),
    info: at('info'),
    notice: at('info', 'warning'),
    warning: at('warning'),
    error: at('error'),
    isDebug: isWritten('debug'),
  };
}

interface Line {
  readonly level: LogLevel;
  readonly message: string;
  readonly detail: LogDetail | undefined;
}

/** pino's numbers for the levels: more severe is higher. */
const levelNumbers = Object.fromEntries(
  logLevels.map((level, index) => [level, (logLevels.length - index) * 10]),
) as Record<LogLevel, number>;

function createJsonWriter(write: LogOptions['write'], wallMs: () => number) {
  // Loaded only for this format: it takes longer than the rest of the log.
  const { pino } = loadLibrary('pino') as typeof import('pino');
  const logger = pino<LogLevel>(
    {
      level: 'trace',
      customLevels: levelNumbers,
      useOnlyCustomLevels: true,
      base: null,
      messageKey: '@message',
      timestamp: () => `,"@timestamp":"${toTimestamp(wallMs())}"`,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: onOneLine },
    },
    { write },
  );
  return ({ level, message, detail }: Line) => logger[level](detail?.fields ?? {}, message);
}

const toLine = {
  text({ level, message, detail }: Line, time: string): string {
    const pairs = Object.entries(detail?.fields ?? {})
      .filter(([, value]) => value !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => ` ${name}=${toTextValue(value)}`);
    return `time="${time}" level=${level} msg=${toTextValue(message)}${pairs.join('')}\n`;
  },
  terminal({ level, message, detail }: Line, dateTime: string): string {
    const time = dateTime.slice('yyyy-mm-ddT'.length, 'yyyy-mm-ddThh:mm:ss'.length);
    // Further lines are indented, so that a message cannot forge another line of the log.
    const lines = (detail?.shown ?? message)
      .split('\n')
      .map((part) => onOneLine(JSON.stringify(part)).slice(1, -1));
    const text = lines.join(`\n${' '.repeat(time.length + 1)}`).replaceAll('\\"', '"');
    return `${time} ${styleText(levelStyles[level], level)}: ${text}\n`;
  },
};

function cutMessage(message: string): string {
  const excess = message.length - maxMessageLength;
  return excess > 0
    ? `${message.slice(0, maxMessageLength)}... (${excess} characters more)`
    : message;
}

function toTextValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[\w\-./@^+]*$/.test(text) ? text : onOneLine(JSON.stringify(text));
}

const levelStyles = {
  panic: 'red',
  fatal: 'red',
  error: 'red',
  warning: 'yellow',
  info: 'green',
  debug: 'gray',
  trace: 'gray',
} as const satisfies Record<LogLevel, string>;

/** JSON that is safe on a terminal: nothing in it moves the cursor, ends the line, changes the text direction or is
 * invisible. */
function onOneLine(json: string): string {
  return json.replace(/[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu, (character) =>
    // In JSON a character beyond 16 bits is two escapes.
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

function toTimestamp(wallMs: number): string {
  const microseconds = Math.floor((wallMs % 1000) * 1000);
  const fraction = trimEnd(microseconds.toString().padStart(6, '0'), '0');
  return toRfc3339(wallMs, fraction && `.${fraction}`);
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
