// Files of a folder as the answer of a method (behaviour: files). @fastify/send implements the HTTP part: types,
// ranges, and conditional requests of browsers. Fastify uses it to serve files; it is loaded when the first file is
// requested.
import { access, realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import Type from 'typebox';
import { toTime } from './around/conditions.ts';
import type { Controller } from './controller.ts';
import { HttpError, notFound, Redirect } from './errors.ts';
import { type OpMethod, op } from './op.ts';

const rest = Type.String();

/** The method that serves all files of a folder, such as `static GET = files(new URL('./public', import.meta.url))`:
 * the parts after its class are the file's path, and a folder's own path is its `index.html`. A path that does not
 * exist, begins with a dot, or leads out of the folder by a link is answered 404. */
export function files(
  folder: string | URL,
): OpMethod<{ readonly rest: typeof rest }, Promise<Readable>> {
  return op({ rest }, function (this: Controller, _fields: unknown, ...parts: string[]) {
    return sendFile(this, folder, parts);
  });
}

/** Returned by a method to answer with one file of a folder, `return sendFile(this, 'uploads', [name])`: 200, 206 for a
 * range, 304 if the client has the file already. Headers that the method has set are retained. Throws 404 like `files`,
 * 412 and 416. */
export async function sendFile(
  { request, response }: Pick<Controller, 'request' | 'response'>,
  folder: string | URL,
  parts: readonly string[],
): Promise<Readable> {
  const root = folder instanceof URL ? fileURLToPath(folder) : resolve(folder);
  // A part is one name: any slash in it was encoded.
  if (parts.some((part) => notAName.test(part))) throw notFound();
  const path = `/${parts.map(encodeURIComponent).join('/')}`;
  const { default: send } = await import('@fastify/send');
  // All that @fastify/send reads of a request.
  const { method } = request;
  const headersAsked = Object.fromEntries(request.headers);
  // Ranges apply to GET only, conditions of files to GET and HEAD. A range or a date that is not one is ignored.
  const [range, first, last, suffix] =
    /^bytes=(?:(\d+)-(\d*)|(-\d+))$/.exec(headersAsked['range'] ?? '') ?? [];
  const isReversed = Number(last || first) < Number(first);
  if (method !== 'GET' || range === undefined || isReversed) delete headersAsked['range'];
  for (const name of ['if-modified-since', 'if-unmodified-since']) {
    if (Number.isNaN(toTime(headersAsked[name]))) delete headersAsked[name];
  }
  const asked = { method, headers: method === 'GET' || method === 'HEAD' ? headersAsked : {} };
  const open = (name: string) =>
    send(asked as unknown as Readable, name, {
      root,
      dotfiles: 'ignore',
      onFile: (file) => refuseOutside(root, file),
    });
  let found = await open(path);
  const isFolder = found.type === 'directory' || path === '/';
  if (found.type === 'directory') found = await open(path === '/' ? path : `${path}/`);
  // A file that is shorter than the end that is asked for is sent whole (RFC 9110, section 14.1.2).
  if (found.statusCode === 416 && Number(suffix) < 0) {
    delete headersAsked['range'];
    found = await open(path);
  }
  // Relative links of the page would resolve against the folder above.
  if (found.type === 'file' && isFolder && !asFolder.test(request.target)) {
    // The file may still be opening.
    found.stream.on('error', () => {}).destroy();
    throw new Redirect(toFolder(request.target), 301);
  }
  const { 'Content-Type': type, ...headers } = found.headers;
  // A missing folder is a bug in the application, reported by the folder's name.
  if (found.statusCode === 404) await access(root);
  if (found.type !== 'file') throw toHttpError(found.statusCode, headers['Content-Range']);
  response.status = found.statusCode;
  if (!response.headers.has('content-type')) response.mediaType ??= type;
  // A cache that callers share keeps nothing that one of them was allowed to see.
  const isOfOne = ['authorization', 'cookie'].some((name) => request.headers.has(name));
  if (isOfOne) headers['Cache-Control'] = 'private, max-age=0';
  for (const [name, value] of Object.entries(headers)) {
    if (!response.headers.has(name)) response.headers.set(name, value);
  }
  return found.stream;
}

/** On Windows a colon begins another stream of a file, and dots and blanks at the end are dropped. */
const notAName = process.platform === 'win32' ? /[/\\:]|[. ]$/ : /[/\\]/;

const asFolder = /^[^?]*\/(?:\?|$)/;

/** A relative path, since a proxy or a mount may have removed its beginning. */
function toFolder(target: string): string {
  const [, last, query = ''] = /([^/?]*)(\?.*)?$/.exec(target) ?? [];
  return `./${last}/${query}`;
}

async function refuseOutside(root: string, file: string): Promise<void> {
  const [base, real] = await Promise.all([realpath(root), realpath(file)]);
  if (!real.startsWith(base + sep)) throw notFound();
}

/** For an invalid path, the answer reveals no more than for a missing file. */
function toHttpError(status: number, range: string | undefined): HttpError {
  if (status === 416)
    return new HttpError(416, range ? { headers: { 'content-range': range } } : {});
  return status === 412 || status >= 500 ? new HttpError(status) : notFound();
}
