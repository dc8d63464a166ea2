// Puts one row's requests on a server, and checks every answer: connections stay open, each sends its next
// request when the last one is answered.
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

/** Rejects at the first answer that is not the row's. */
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
          const end = endOfAnswer(received);
          if (end === undefined) return;
          const answer = received.slice(0, end);
          received = received.slice(end);
          // Ids and dates differ; the body of a right answer is the same each time.
          const body = answer.slice(answer.indexOf('\r\n\r\n'));
          const hasStatus = answer.startsWith(`HTTP/1.1 ${row.status} `);
          if (!hasStatus || (row.answer !== undefined && body !== known)) {
            if (!hasStatus || !isAnswer(body, row.answer)) return reject(new Error(answer));
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

function toRequest({ method, target, body }: Row): string {
  const text = body === undefined ? '' : JSON.stringify(body);
  const about =
    body === undefined
      ? ''
      : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
  const common = 'host: localhost\r\nuser-agent: bench\r\naccept: */*\r\n';
  return `${method} ${target} HTTP/1.1\r\n${common}${about}\r\n${text}`;
}

/** Undefined while it is not complete. */
function endOfAnswer(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return undefined;
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text.slice(0, head + 2))?.[1];
  if (length === undefined) throw new Error(`an answer without a length: ${text.slice(0, head)}`);
  const end = head + 4 + Number(length);
  return text.length < end ? undefined : end;
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
