import { AccessDenied, Controller, op, open, readCookie, setCookie, Type } from '../../index.ts';
import { board } from '../board.ts';
import { sessionCookie, userOf } from '../members.ts';

export class Default extends Controller {
  static override readonly guard = open();

  static readonly POST = op(
    {
      body: Type.Object({
        user: Type.String({ pattern: '^[a-z]{2,20}$' }),
        password: Type.String({ maxLength: 100 }),
      }),
    },
    function (this: Default, { user, password }) {
      const token = board.login(user, password);
      if (token === undefined) throw new AccessDenied({ scheme: 'session' });
      // Only over TLS, which the proxy reports.
      const secure = this.request.origin.startsWith('https:');
      setCookie(this.response.headers, sessionCookie, token, { maxAge: 86_400, secure });
      return { user };
    },
  );

  GET() {
    return { user: userOf(this.request.headers) ?? null, address: this.request.remoteAddress };
  }

  DELETE() {
    board.logout(readCookie(this.request.headers, sessionCookie) ?? '');
    setCookie(this.response.headers, sessionCookie, '', { maxAge: 0 });
  }
}
