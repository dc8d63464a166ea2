// The log of both programs: one line per message, in the forms that readers of the reference's log
// know. What is worth saying, and how often, is left to the callers.
import { styleText } from 'node:util';
import { pino } from 'pino';
import { trimEnd } from './trim-end.ts';

/** From the gravest to the most talkative, as the lines name them. */
export const logLevels = ['panic', 'fatal', 'error', 'warning', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof logLevels)[number];

/** `terminal` is for a person who looks on: short, and a message of several lines stays so. */
export const logFormats = ['text', 'json', 'terminal'] as const;
export type LogFormat = (typeof logFormats)[number];

/** Messages go to standard error, one line each. Secrets are never passed in. */
export interface Log {
  debug(message: string): void;
  info(message: string, detail?: LogDetail): void;
  /** What went well, and answers a question of whoever looks at the default level: written at the level
   * info wherever warnings are. */
  notice(message: string): void;
  warning(message: string, detail?: LogDetail): void;
  error(message: string, detail?: LogDetail): void;
  /** True when debug messages are written, so that callers can skip building them. */
  readonly isDebug: boolean;
}

/** What a line has beside its message. */
export interface LogDetail {
  /** For programs: each is a field of the line, but for the format `terminal`. */
  readonly fields: Readonly<Record<string, string | number>>;
  /** For people, in place of the message in the format `terminal`; may have several lines. */
  readonly shown: string;
}

export interface LogOptions {
  /** Messages of this level and of graver ones are written. */
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Takes one line, its newline included. */
  readonly write: (line: string) => void;
  /** Milliseconds since the epoch, with a fraction where the clock has one. It may be set back and forth. */
  readonly wallMs?: () => number;
}

/** A debug line may quote a request of any size; nobody reads more than this of it. */
const maxMessageLength = 64 * 1024;

/** pino's numbers for the levels: graver is higher. */
const levelNumbers = Object.fromEntries(
  logLevels.map((level, index) => [level, (logLevels.length - index) * 10]),
) as Record<LogLevel, number>;

/** How a line is written (behaviour: log-lines). */
export function createLog({ level, format, write, wallMs = () => Date.now() }: LogOptions): Log {
  const logger = pino<LogLevel>(
    {
      level,
      customLevels: levelNumbers,
      useOnlyCustomLevels: true,
      base: null,
      messageKey: '@message',
      timestamp: () => `,"@timestamp":"${toTimestamp(wallMs())}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => write(toOutput[format](JSON.parse(line))) },
  );
  const hasWarningsOnly = logger.isLevelEnabled('warning') && !logger.isLevelEnabled('info');
  const notices = hasWarningsOnly ? logger.child({}, { level: 'info' }) : logger;
  return {
    debug: (message) => logger.debug(cutMessage(message)),
    info: (message, detail) => logger.info({ detail }, cutMessage(message)),
    notice: (message) => notices.info(cutMessage(message)),
    warning: (message, detail) => logger.warning({ detail }, cutMessage(message)),
    error: (message, detail) => logger.error({ detail }, cutMessage(message)),
    isDebug: logger.isLevelEnabled('debug'),
  };
}

function cutMessage(message: string): string {
  const excess = message.length - maxMessageLength;
  return excess > 0
    ? `${message.slice(0, maxMessageLength)}... (${excess} characters more)`
    : message;
}

/** What pino writes. */
interface LogRecord {
  readonly level: LogLevel;
  readonly '@timestamp': string;
  readonly '@message': string;
  readonly detail?: LogDetail;
}

/** The line that is written. */
const toOutput: Readonly<Record<LogFormat, (record: LogRecord) => string>> = {
  json({ level, '@timestamp': timestamp, '@message': message, detail }) {
    // In the order of their names, as the reference has them.
    const record = { '@message': message, '@timestamp': timestamp, level, ...detail?.fields };
    const sorted = Object.fromEntries(Object.entries(record).sort(byName));
    return `${onOneLine(JSON.stringify(sorted))}\n`;
  },
  text({ level, '@timestamp': timestamp, '@message': message, detail }) {
    const fields = Object.entries(detail?.fields ?? {}).sort(byName);
    const pairs = fields.map(([name, value]) => ` ${name}=${toTextValue(`${value}`)}`);
    const time = timestamp.replace(/\.\d+/, '');
    return `time="${time}" level=${level} msg=${toTextValue(message)}${pairs.join('')}\n`;
  },
  terminal({ level, '@timestamp': timestamp, '@message': message, detail }) {
    const time = timestamp.slice('yyyy-mm-ddT'.length, 'yyyy-mm-ddThh:mm:ss'.length);
    // Further lines are indented, so that no message can look like another line of the log.
    const lines = (detail?.shown ?? message)
      .split('\n')
      .map((part) => onOneLine(JSON.stringify(part)).slice(1, -1));
    const text = lines.join(`\n${' '.repeat(time.length + 1)}`).replaceAll('\\"', '"');
    return `${time} ${styleText(levelStyles[level], level)}: ${text}\n`;
  },
};

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function toTextValue(text: string): string {
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

/** JSON that stays on its line in a terminal too: nothing in it moves the cursor, ends the line or
 * turns the direction of writing. */
function onOneLine(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
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
