import { Readable } from 'node:stream';
import { Controller, HttpError, op, optional, part, type StateOf, Type } from '../../../index.ts';
import { board, type Note } from '../../board.ts';
import type { folder } from './_folder.ts';

const id = part('id', Type.Integer({ minimum: 1 }));
const tags = Type.Array(Type.String({ pattern: '^[a-z0-9]+(?:-[a-z0-9]+)*$' }), { maxItems: 5 });
const text = Type.String({ minLength: 1, maxLength: 2_000 });
const note = Type.Object(
  { id: Type.Integer(), author: Type.String(), text, tags },
  { $id: 'Note' },
);

export function findNote(noteId: number): Note {
  const found = board.find(noteId);
  if (found === undefined) throw new HttpError(404, { detail: `there is no note ${noteId}` });
  return found;
}

export class Default extends Controller<StateOf<typeof folder>> {
  /** `/notes?tag=a,b&limit=5`, or one by its id. */
  static readonly GET = op(
    {
      path: [optional(id)],
      query: Type.Object({
        tag: Type.Optional(Type.Array(Type.String(), { explode: false })),
        limit: Type.With(Type.Integer({ minimum: 1, maximum: 100 }), { default: 20 }),
      }),
      returns: { 200: Type.Union([note, Type.Array(note)]) },
      filter: true,
      etag: true,
    },
    ({ tag, limit }, noteId) => {
      if (noteId !== undefined) return findNote(noteId);
      const all = [...board.notes()];
      return all
        .filter(({ tags }) => tag?.every((one) => tags.includes(one)) ?? true)
        .slice(0, limit);
    },
  );

  static readonly POST = op(
    { body: Type.Object({ text, tags: Type.With(tags, { default: [] }) }), returns: { 201: note } },
    function (this: Default, fields) {
      const written = board.write({ author: this.state.user, ...fields });
      this.response.status = 201;
      this.response.headers.set('location', `/notes/${written.id}`);
      return written;
    },
  );

  /** With `If-Match`, the note is only changed if no other call has changed it since. */
  static readonly PUT = op(
    { path: [id], body: Type.Object({ text, tags }), returns: { 200: note }, etag: true },
    function (this: Default, fields, noteId) {
      const { author } = findNote(noteId);
      if (author !== this.state.user) throw new HttpError(403, { detail: `it is ${author}'s` });
      return board.write({ author, ...fields }, noteId);
    },
  );

  static readonly DELETE = op({ path: [id] }, (_fields, noteId) => {
    findNote(noteId);
    board.remove(noteId);
  });
}

/** Streams all notes, one per line, as they are read. */
export class Export extends Controller {
  GET() {
    this.response.mediaType = 'application/x-ndjson';
    return Readable.from(toLines());
  }
}

function* toLines(): Generator<string> {
  for (const one of board.notes()) yield `${JSON.stringify(one)}\n`;
}
