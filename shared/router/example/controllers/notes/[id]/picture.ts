// The picture of a note: written while it arrives, and sent by ranges.
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Controller, HttpError, op, part, sendFile, Type } from '../../../../index.ts';
import { board } from '../../../board.ts';
import { findNote } from '../index.ts';

const id = part('id', Type.Integer({ minimum: 1 }));

export class Default extends Controller {
  static readonly GET = op({ path: [id] }, function (this: Default, _fields, noteId) {
    findNote(noteId);
    this.response.headers.set('cache-control', 'private, no-cache');
    return sendFile(this, board.folder, [`${noteId}.png`]);
  });

  static readonly PUT = op(
    { path: [id], stream: true, limits: { bodyBytes: 8 * 1024 ** 2, bodyTimeoutMs: 60_000 } },
    async function (this: Default, _fields, body, noteId) {
      findNote(noteId);
      if (this.request.headers.get('content-type') !== 'image/png') {
        throw new HttpError(415, { detail: 'a picture is image/png' });
      }
      const path = join(board.folder, `${noteId}.png`);
      const partial = `${path}.${this.request.id}`;
      try {
        await pipeline(body, createWriteStream(partial), { signal: this.request.signal });
        await rename(partial, path);
      } finally {
        await rm(partial, { force: true });
      }
    },
  );
}
