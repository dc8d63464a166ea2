// The application's data: notes with their pictures, sessions, and subscribers to news.
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSameSecret } from '../index.ts';

export interface Note {
  readonly id: number;
  readonly author: string;
  readonly text: string;
  readonly tags: string[];
}

const maxSessions = 10_000;

export class Board {
  readonly #password: string;
  /** The folder of pictures, which are named by the id of their note. */
  readonly folder = mkdtempSync(join(tmpdir(), 'board-'));
  /** Emits `note` with each note that is written. */
  readonly news = new EventEmitter().setMaxListeners(0);
  readonly #notes = new Map<number, Note>();
  readonly #sessions = new Map<string, string>();
  #lastId = 0;

  constructor(password: string) {
    this.#password = password;
  }

  /** A token for a new session; undefined where the password is wrong. */
  login(user: string, password: string): string | undefined {
    if (!isSameSecret(password, this.#password)) return undefined;
    const token = randomBytes(16).toString('hex');
    this.#sessions.set(token, user);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > maxSessions && oldest !== undefined) this.#sessions.delete(oldest);
    return token;
  }

  logout(token: string): void {
    this.#sessions.delete(token);
  }

  userOf(token: string | undefined): string | undefined {
    return token === undefined ? undefined : this.#sessions.get(token);
  }

  /** The newest first. */
  *notes(): Generator<Note> {
    for (const id of [...this.#notes.keys()].reverse()) {
      const note = this.#notes.get(id);
      if (note !== undefined) yield note;
    }
  }

  find(id: number): Note | undefined {
    return this.#notes.get(id);
  }

  write(note: Omit<Note, 'id'>, id = ++this.#lastId): Note {
    const written = { id, ...note };
    this.#notes.set(id, written);
    this.news.emit('note', written);
    return written;
  }

  remove(id: number): void {
    this.#notes.delete(id);
  }
}

// biome-ignore lint/style/noProcessEnv: the application's only setting.
export const board = new Board(process.env['BOARD_PASSWORD'] ?? 'board');
