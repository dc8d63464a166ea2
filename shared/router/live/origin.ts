// Which pages may open a WebSocket. Browsers send cookies with a handshake of any site, and no preflight before it,
// so another site could use a socket in its visitors' names (behaviour: sockets).
import type { Cors } from '../cors.ts';
import { HttpError } from '../errors.ts';
import { isOwnPage } from '../own-page.ts';
import type { RequestHeaders } from '../request/request.ts';

/** Lets through the application's own pages, origins that `cors` lists, and programs, which send no origin. Throws
 * 403. `cors: true` does not help: it admits all without credentials, which a handshake cannot be made without. */
export function refuseForeignOrigin(headers: RequestHeaders, cors: Cors | undefined): void {
  const origin = headers.get('origin');
  if (origin === null || isOwnPage(origin, headers)) return;
  if (typeof cors === 'object' && cors.origins.includes(origin)) return;
  throw new HttpError(403, { detail: 'sockets from this origin are refused' });
}
