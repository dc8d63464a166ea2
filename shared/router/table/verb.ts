// The method names that are handlers, and which verb answers a request method (behaviour: verbs).

const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
] as const;

export const knownMethods: ReadonlySet<string> = new Set(methods);

/** `CONNECT` is a WebSocket, never the HTTP method of this name. */
export type Verb = (typeof methods)[number] | 'ANY';

const handlerName =
  /^(?:(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|ANY)(?:_([A-Za-z0-9_]+))?|CONNECT)$/;

/** The verbs that `ANY` represents in lists. */
export const anyVerbs: readonly Verb[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** `POST_reset_all` is the verb POST under the sub-path `reset_all`; other names are not handlers. */
export function parseHandlerName(
  name: string,
): { readonly verb: Verb; readonly suffix: string | undefined } | undefined {
  const match = handlerName.exec(name);
  return match === null ? undefined : { verb: (match[1] ?? 'CONNECT') as Verb, suffix: match[2] };
}

/** The verbs that may answer a method, best first. ANY never answers TRACE and CONNECT. */
export function answeringVerbs(method: string): readonly string[] {
  if (method === 'HEAD') return ['HEAD', 'GET', 'ANY'];
  if (method === 'TRACE') return [method];
  if (method === 'CONNECT') return [];
  return [method, 'ANY'];
}

/** The Allow header for these verbs, sorted: GET implies HEAD, and OPTIONS is always answered. A WebSocket is opened by
 * GET. */
export function allowedMethods(verbs: Iterable<string>): readonly string[] {
  const allowed = new Set<string>(['OPTIONS']);
  for (const verb of verbs) {
    if (verb === 'CONNECT') allowed.add('GET');
    else
      for (const method of verb === 'ANY' ? anyVerbs : [verb]) {
        allowed.add(method);
        if (method === 'GET') allowed.add('HEAD');
      }
  }
  return [...allowed].sort();
}
