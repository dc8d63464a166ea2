// Sends each new note as an event.
import { on } from 'node:events';
import { Controller, op, ServerEvent } from '../../index.ts';
import { board, type Note } from '../board.ts';
import { members } from '../members.ts';

export class Default extends Controller {
  static override readonly guard = members;
  static readonly GET = op({ produces: 'text/event-stream' });

  async *GET() {
    yield new ServerEvent({ text: 'the news begin' }, { name: 'hello' });
    // The signal ends the wait when the reader has disconnected.
    const notes = on(board.news, 'note', { signal: this.request.signal });
    for await (const [note] of notes as AsyncIterable<[Note]>) {
      yield new ServerEvent({ text: note.text }, { id: String(note.id), name: 'note' });
    }
  }
}
