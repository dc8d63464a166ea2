// Whether a request comes from a page of the application itself (behaviour: origins).
import type { RequestHeaders } from './request/request.ts';

/** By the host that the browser has sent it to. Behind a proxy that changes `Host` no page is known. */
export function isOwnPage(origin: string, headers: RequestHeaders): boolean {
  const page = URL.parse(origin);
  const own = URL.parse(`${page?.protocol}//${headers.get('host')}`);
  return page !== null && own !== null && page.host === own.host;
}
