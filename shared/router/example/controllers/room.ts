// A chat room: every member receives each message.
import { Controller, type Fields, HttpError, op, type Socket, Type } from '../../index.ts';
import { members, userOf } from '../members.ts';

const inside = new Set<Socket>();
const maxInside = 100;

export class Default extends Controller {
  static override readonly guard = members;
  static override readonly protocols = ['board.v1'];
  static readonly MESSAGE = op({ body: Type.Object({ text: Type.String({ maxLength: 500 }) }) });

  CONNECT() {
    if (inside.size >= maxInside) throw new HttpError(503, { detail: 'the room is full' });
    inside.add(this.socket);
    this.socket.send({ inside: inside.size });
  }

  MESSAGE({ text }: Fields<typeof Default.MESSAGE>) {
    const user = userOf(this.request.headers);
    // A member whose session has ended meanwhile is excluded.
    if (user === undefined) this.socket.close();
    else for (const socket of inside) socket.send({ user, text });
  }

  DISCONNECT() {
    inside.delete(this.socket);
  }
}
