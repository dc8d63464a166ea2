// Members are callers with a session cookie. Programs send it like browsers.
import { AccessDenied, type Guard, readCookie } from '../index.ts';
import { board } from './board.ts';

export const sessionCookie = 'session';

export function userOf(headers: Headers): string | undefined {
  return board.userOf(readCookie(headers, sessionCookie));
}

export const members: Guard = {
  authenticates: true,
  security: { name: 'session', scheme: { type: 'apiKey', in: 'cookie', name: sessionCookie } },
  check({ headers }) {
    if (userOf(headers) === undefined) throw new AccessDenied({ scheme: 'session' });
  },
};
