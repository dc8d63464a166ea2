// Servers that repeat their input, as careless servers do: what they quote must not get into logs and pages.
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import type { ExecutionContext } from 'ava';
import { listenFor } from './listen.ts';

/** A key-value store that knows no command, and quotes the first `length` characters of its arguments. Resolves to its
 * port. */
export async function startEchoStore(t: ExecutionContext, length: number): Promise<number> {
  const server = createServer((socket) => {
    socket.on('data', (chunk: Buffer) => {
      for (const command of chunk.toString('latin1').split(/^\*\d+\r\n/m)) {
        const parts = command.split('\r\n').filter((part) => part !== '' && !part.startsWith('$'));
        if (parts.length === 0) continue;
        const quoted = parts.slice(1).map((part) => `'${part.slice(0, length)}'`);
        socket.write(
          `-ERR unknown command '${parts[0]}', with args beginning with: ${quoted.join(' ')}\r\n`,
        );
      }
    });
  });
  return listenFor(t, server);
}

/** Refuses every request with a text that contains its headers, and the name and password in them. */
export async function startEchoWeb(t: ExecutionContext, status = 403): Promise<number> {
  const server = createHttpServer((request, response) => {
    request.resume();
    const { authorization = '' } = request.headers;
    const pair = Buffer.from(authorization.replace(/^basic /i, ''), 'base64').toString();
    // Git first sends a request without credentials.
    response.writeHead(authorization === '' ? 401 : status, {
      'content-type': 'text/plain',
      'www-authenticate': 'Basic realm="echo"',
    });
    response.end(`${request.url}\n${JSON.stringify(request.headers)}\n${pair}\n`);
  });
  return listenFor(t, server);
}
