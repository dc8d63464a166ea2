// Sends one row's requests to a server, and checks every answer: connections stay open, and each sends its next request
// when the previous one is answered.
import { once } from 'node:events';
import { connect } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { Row } from './rows.ts';

export interface Load {
  readonly port: number;
  readonly row: Row;
  readonly requests: number;
}

export type LoadReport = { readonly done: true } | { readonly failure: string };

const connections = 16;
const deadlineMs = 120_000;

/** Rejects at the first answer that differs from the row's. */
export async function runLoad({ port, row, requests }: Load): Promise<void> {
  const request = toRequest(row);
  let unsent = requests;
  const signal = AbortSignal.timeout(deadlineMs);

  async function runConnection(): Promise<void> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect', { signal });
    try {
      await new Promise<void>((resolve, reject) => {
        let received = '';
        let known = '';
        const sendNext = (): void => {
          if (unsent === 0) {
            resolve();
            return;
          }
          unsent -= 1;
          socket.write(request);
        };
        socket.setEncoding('latin1');
        socket.on('data', (text: string) => {
          received += text;
          const answer = readAnswer(received);
          if (answer === undefined) return;
          received = received.slice(answer.end);
          const { head, body } = answer;
          // The body of a correct answer is always the same, if it is known at all.
          const isRight = head.startsWith(`HTTP/1.1 ${row.status} `) && hasHeaders(head, row);
          if (!isRight || (row.answer !== undefined && body !== known)) {
            if (!isRight || !isAnswer(body, row.answer)) {
              reject(new Error(head + body));
              return;
            }
            known = body;
          }
          sendNext();
        });
        socket.once('error', reject);
        socket.once('close', () => reject(new Error('the server closed a connection')));
        signal.addEventListener('abort', () => reject(signal.reason));
        sendNext();
      });
    } finally {
      socket.destroy();
    }
  }

  await Promise.all(Array.from({ length: connections }, runConnection));
}

function toRequest({ method, target, authorization, body }: Row): string {
  const text = body === undefined ? '' : JSON.stringify(body);
  const about =
    body === undefined
      ? ''
      : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
  const common = 'host: localhost\r\nuser-agent: bench\r\naccept: */*\r\n';
  const credentials = authorization === undefined ? '' : `authorization: ${authorization}\r\n`;
  return `${method} ${target} HTTP/1.1\r\n${common}${credentials}${about}\r\n${text}`;
}

interface Answer {
  readonly head: string;
  readonly body: string;
  /** Where the next answer begins. */
  readonly end: number;
}

/** Undefined while the answer is incomplete. */
function readAnswer(text: string): Answer | undefined {
  const bodyAt = text.indexOf('\r\n\r\n') + 4;
  if (bodyAt < 4) return undefined;
  const head = text.slice(0, bodyAt);
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
  if (length !== undefined) {
    const end = bodyAt + Number(length);
    return text.length < end ? undefined : { head, body: text.slice(bodyAt, end), end };
  }
  // Chunked: each chunk is preceded by its length in hexadecimal digits, and the last one is empty.
  let body = '';
  for (let at = bodyAt; ; ) {
    const line = text.indexOf('\r\n', at);
    if (line < 0) return undefined;
    const size = Number.parseInt(text.slice(at, line), 16);
    if (text.length < line + 4 + size) return undefined;
    body += text.slice(line + 2, line + 2 + size);
    at = line + 4 + size;
    if (size === 0) return { head, body, end: at };
  }
}

function hasHeaders(head: string, { headers = [] }: Row): boolean {
  return headers.every((name) => head.includes(`\r\n${name}: `));
}

function isAnswer(body: string, expected: unknown): boolean {
  return isDeepStrictEqual(JSON.parse(Buffer.from(body, 'latin1').toString()), expected);
}

process.on('message', (load: Load) => {
  const report = (message: LoadReport): void => {
    process.send?.(message);
  };
  runLoad(load).then(
    () => report({ done: true }),
    (error: unknown) => report({ failure: String(error) }),
  );
});
process.once('disconnect', () => process.exit());
