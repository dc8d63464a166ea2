// One open connection to one server: sends commands and receives replies in order. It never sends anything twice.
// connection-opening.ts opens it. Below is the format of both on the wire (RESP, version 2): commands are arrays of
// texts, written with one character per byte, so that those of a batch are joined and written in one piece. Buffer is
// imported, since a global is resolved at each use.
import { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { Duration } from '../../metrics.ts';

/** One encoded command; one character is one byte. */
export type CommandText = string;

/** Integers above 2^53 are rounded. */
export type RawReply = number | string | null | Error | readonly RawReply[];

/** An error reply of the server. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** True when the connection ended without an answer. */
export function isLost(reply: RawReply | undefined): boolean {
  return reply instanceof Error && !(reply instanceof ReplyError);
}

export interface Connection {
  /**
   * Writes all commands at once. `done` is called once, never during `send`, with one reply per command; commands
   * unanswered at the connection's end get errors.
   */
  send(commands: readonly CommandText[], done: (replies: RawReply[]) => void): void;
  /** Ends it at once, with all unanswered commands. */
  destroy(): void;
  /** Resolves, with the reason, when the connection has ended, whoever ended it. */
  readonly ended: Promise<string>;
  /**
   * Sends one command and returns its reply. Rejects with the server's error, and when the reply is late, which ends
   * the connection.
   */
  ask(command: CommandText): Promise<RawReply>;
}

interface Sent {
  readonly count: number;
  readonly replies: RawReply[];
  readonly done: (replies: RawReply[]) => void;
  readonly sentMs: number;
}

export interface ConnectionDeps {
  /** Time limit of `ask`. */
  readonly timeoutMs: number;
  /** Undefined if calls are not measured. */
  readonly callDuration: Duration | undefined;
  readonly clock: Clock;
}

/** Takes over an open socket: no other code may use it from now on. */
export function createConnection(
  socket: Socket,
  { clock, timeoutMs, callDuration }: ConnectionDeps,
): Connection {
  const unanswered: Sent[] = [];
  let reason: string | undefined;
  let notifyEnded: (reason: string) => void = () => {};
  const ended = new Promise<string>((resolve) => {
    notifyEnded = resolve;
  });
  const reader = new ReplyReader(receive);
  socket.removeAllListeners('data');
  // The client library ends its last reply at the carriage return: the line feed may still have to come.
  let isFirst = true;
  socket.on('data', (chunk) => {
    const rest = isFirst && chunk[0] === lineFeed ? chunk.subarray(1) : chunk;
    isFirst = false;
    const problem = reason === undefined ? reader.feed(rest) : undefined;
    if (problem !== undefined) end(`the server sent ${problem}`);
  });
  socket.on('error', (error) => end(errorText(error)));
  socket.on('close', () => end('the connection was closed'));
  if (socket.destroyed) end('the connection was closed');
  return { send, destroy, ended, ask };

  function send(commands: readonly CommandText[], done: Sent['done']): void {
    const sent = { count: commands.length, replies: [], done, sentMs: clock.monotonicMs() };
    if (reason === undefined && commands.length > 0) {
      unanswered.push(sent);
      let text = '';
      for (const command of commands) text += command;
      socket.write(text, 'latin1');
    } else {
      setImmediate(fail, sent);
    }
  }

  function ask(command: CommandText): Promise<RawReply> {
    return new Promise((resolve, reject) => {
      const cancelTimeout = clock.after(timeoutMs, () => {
        reject(new Error(`no answer in ${timeoutMs} ms`));
        destroy();
      });
      send([command], ([reply]) => {
        cancelTimeout();
        if (reply === undefined || reply instanceof Error) reject(reply);
        else resolve(reply);
      });
    });
  }

  function destroy(): void {
    end('the connection was closed');
  }

  function receive(reply: RawReply): void {
    const [first] = unanswered;
    if (reason !== undefined) return;
    if (first === undefined) {
      end('the server sent an unexpected reply');
      return;
    }
    first.replies.push(reply);
    if (first.replies.length < first.count) return;
    // Nearly always there is only one, and `pop` costs almost nothing.
    if (unanswered.length === 1) unanswered.pop();
    else unanswered.shift();
    observe(first);
    first.done(first.replies);
  }

  function end(why: string): void {
    if (reason !== undefined) return;
    reason = why;
    socket.destroy();
    notifyEnded(why);
    // Deferred: the caller that ends it may be in the middle of an operation.
    for (const sent of unanswered) {
      observe(sent);
      setImmediate(fail, sent);
    }
    unanswered.length = 0;
  }

  /**
   * Observes calls without an answer too, until they are abandoned: else a server would seem fast because it does not
   * answer.
   */
  function observe({ sentMs }: Sent): void {
    callDuration?.observe((clock.monotonicMs() - sentMs) / 1000);
  }

  function fail({ count, replies, done }: Sent): void {
    while (replies.length < count) replies.push(new Error(reason));
    done(replies);
  }
}

/** The name is first, then the arguments. */
export function toCommandText(...parts: readonly (string | number)[]): CommandText {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) text += toBulkText(typeof part === 'string' ? part : String(part));
  return text;
}

/**
 * The fixed beginnings of increments, by the length of the key, for the usual lengths: made once, because nearly every
 * command is an increment.
 */
const incrementHeads = Array.from({ length: 512 }, (_, length) => toIncrementHead(length));

export function toIncrementText(key: string, amount: number | bigint): CommandText {
  const length = Buffer.byteLength(key);
  const head = incrementHeads[length] ?? toIncrementHead(length);
  const bytes = length === key.length ? key : toBytes(key);
  return amount === 1
    ? `${head}${bytes}\r\n$1\r\n1\r\n`
    : `${head}${bytes}\r\n${toBulkText(String(amount))}`;
}

function toIncrementHead(length: number): string {
  return `*3\r\n$6\r\nINCRBY\r\n$${length}\r\n`;
}

export function toBulkText(text: string): string {
  const length = Buffer.byteLength(text);
  return `$${length}\r\n${length === text.length ? text : toBytes(text)}\r\n`;
}

/** For text beyond ASCII: the bytes of its UTF-8 form. */
function toBytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** Splits the bytes of a server into replies. */

/** The bytes that begin a reply, and those that end a line. */
const minus = 0x2d;
const plus = 0x2b;
const colon = 0x3a;
const dollar = 0x24;
const star = 0x2a;
const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const zero = 0x30;

/** Errors are lines, including those of scripts. */
const maxLineBytes = 16_384;
/** A counter has at most 20 digits; a longer text, set by another program, is skipped without being stored. */
const maxTextBytes = 65_536;
/** The server's own maximum. */
const maxTextLength = 2 ** 32;
/** A cluster's map of slots is an array, and may be long. */
const maxArrayBytes = 8_388_608;
const maxDepth = 8;
/** Numbers with this many digits are exact when parsed digit by digit. */
const exactDigits = 15;

interface OpenArray {
  readonly items: RawReply[];
  readonly length: number;
}

export class ReplyReader {
  readonly #onReply: (reply: RawReply) => void;
  /** The current bytes, and the index of the next one. */
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** The bytes of a skipped text that are still to come. */
  #bytesToSkip = 0;
  /** Incomplete arrays, the outermost first. */
  readonly #open: OpenArray[] = [];
  #arrayBytes = 0;
  #problem: string | undefined;

  constructor(onReply: (reply: RawReply) => void) {
    this.#onReply = onReply;
  }

  /** Reads the next bytes. Returns the error in them, after which nothing more may be fed. */
  feed(chunk: Buffer): string | undefined {
    this.#bytes =
      this.#at === this.#bytes.length
        ? chunk
        : Buffer.concat([this.#bytes.subarray(this.#at), chunk]);
    this.#at = 0;
    while (this.#at < this.#bytes.length) {
      const start = this.#at;
      const isConsumed = this.#bytesToSkip > 0 ? this.#skip() : this.#parse();
      if (this.#problem !== undefined) return this.#problem;
      if (!isConsumed) return undefined;
      if (this.#open.length > 0) {
        this.#arrayBytes += this.#at - start;
        if (this.#arrayBytes > maxArrayBytes) return 'an endless array';
      }
    }
    return undefined;
  }

  /** This method and those that it calls return false when more bytes are needed. */
  #parse(): boolean {
    switch (this.#bytes[this.#at]) {
      case colon:
        return this.#parseInteger() || this.#parseLine((text) => this.#addInteger(text));
      case plus:
        return this.#parseLine((reply) => this.#add(reply));
      case minus:
        return this.#parseLine((text) => this.#add(new ReplyError(text)));
      case dollar:
        return this.#parseText();
      case star:
        return this.#parseArray();
      default:
        this.#problem = `a reply that begins with ${JSON.stringify(String.fromCharCode(this.#bytes[this.#at] ?? 0))}`;
        return true;
    }
  }

  #skip(): boolean {
    const count = Math.min(this.#bytesToSkip, this.#bytes.length - this.#at);
    this.#at += count;
    this.#bytesToSkip -= count;
    return true;
  }

  /** Parses a small integer in place, as nearly every reply is one. Also false for other replies. */
  #parseInteger(): boolean {
    const first = this.#at + 1;
    let position = first;
    let value = 0;
    for (; position < this.#bytes.length; position++) {
      const digit = (this.#bytes[position] as number) - zero;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    const digits = position - first;
    if (digits === 0 || digits > exactDigits) return false;
    if (this.#bytes[position] !== carriageReturn || this.#bytes[position + 1] !== lineFeed)
      return false;
    this.#at = position + 2;
    this.#add(value);
    return true;
  }

  #parseLine(use: (text: string) => void): boolean {
    const end = this.#bytes.indexOf('\r\n', this.#at + 1);
    if ((end === -1 ? this.#bytes.length : end) - this.#at > maxLineBytes) {
      this.#problem = 'an endless line';
      return true;
    }
    if (end === -1) return false;
    const text = this.#bytes.toString('utf8', this.#at + 1, end);
    this.#at = end + 2;
    use(text);
    return true;
  }

  #addInteger(text: string): void {
    if (/^-?\d{1,19}$/.test(text)) this.#add(Number(text));
    else this.#problem = 'an invalid integer';
  }

  #parseText(): boolean {
    const start = this.#at;
    const length = this.#parseLength(maxTextLength);
    if (length === undefined) return this.#problem !== undefined;
    if (length === -1) {
      this.#add(null);
    } else if (length > maxTextBytes) {
      if (this.#open.length > 0) this.#problem = 'an endless text';
      this.#bytesToSkip = length + 2;
      this.#add('');
    } else if (this.#bytes.length - this.#at < length + 2) {
      this.#at = start;
      return false;
    } else {
      const text = this.#bytes.toString('utf8', this.#at, this.#at + length);
      if (
        this.#bytes[this.#at + length] !== carriageReturn ||
        this.#bytes[this.#at + length + 1] !== lineFeed
      ) {
        this.#problem = 'a text whose length differs from the announced one';
      }
      this.#at += length + 2;
      this.#add(text);
    }
    return true;
  }

  #parseArray(): boolean {
    const length = this.#parseLength(maxArrayBytes);
    if (length === undefined) return this.#problem !== undefined;
    if (length === -1) this.#add(null);
    else if (length === 0) this.#add([]);
    else if (this.#open.length === maxDepth) this.#problem = 'arrays that are nested too deeply';
    else this.#open.push({ items: [], length });
    return true;
  }

  /**
   * Parses a length of one or two digits in place: nearly all arrays and texts from scripts have one. Undefined for
   * others.
   */
  #parseShortLength(): number | undefined {
    const first = (this.#bytes[this.#at + 1] ?? 0) - zero;
    if (first < 0 || first > 9) return undefined;
    const second = (this.#bytes[this.#at + 2] ?? 0) - zero;
    const digits = second >= 0 && second <= 9 ? 2 : 1;
    const end = this.#at + 1 + digits;
    if (this.#bytes[end] !== carriageReturn || this.#bytes[end + 1] !== lineFeed) return undefined;
    this.#at = end + 2;
    return digits === 1 ? first : first * 10 + second;
  }

  /** -1 for a null reply. Undefined when more bytes are needed, or after an error. */
  #parseLength(max: number): number | undefined {
    let length = this.#parseShortLength();
    if (length !== undefined) return length;
    this.#parseLine((text) => {
      if (/^(-1|\d{1,10})$/.test(text) && Number(text) <= max) length = Number(text);
      else this.#problem = 'an invalid length';
    });
    return length;
  }

  /** Adds a reply, or the next item of the innermost array. */
  #add(reply: RawReply): void {
    let complete = reply;
    for (let array = this.#open.at(-1); array !== undefined; array = this.#open.at(-1)) {
      array.items.push(complete);
      if (array.items.length < array.length) return;
      this.#open.pop();
      complete = array.items;
    }
    this.#arrayBytes = 0;
    if (this.#problem === undefined) this.#onReply(complete);
  }
}
