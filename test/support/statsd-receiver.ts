// Receives push metrics over TCP and UDP on one port and sums them up, like a statsd daemon.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { freePort } from './free-port.ts';
import type { Owner } from './owner.ts';

export interface StatsdReceiver {
  readonly port: number;
  /** By `name|type`, or `name|type|tag,tag` with the tags sorted: the sum of a counter's values, and the number of
   * lines of any other type. The map is updated; copy it to compare later. */
  readonly totals: ReadonlyMap<string, number>;
  /** Stops receiving. Idempotent. */
  close(): Promise<void>;
}

/** Parses a statsd line; undefined for any other line. */
export function parseStatsdLine(
  line: string,
): { label: string; type: string; value: number } | undefined {
  const [main = '', tagText = ''] = splitOnce(line.trim(), '|#');
  const colon = main.lastIndexOf(':');
  const [valueText, type] = main.slice(colon + 1).split('|');
  const value = Number(valueText);
  if (colon <= 0 || type === undefined || valueText === '' || Number.isNaN(value)) return undefined;
  const tags = tagText.split(',').filter((tag) => tag !== '');
  const parts = [main.slice(0, colon), type, tags.sort().join(',')];
  return { label: parts.filter((part) => part !== '').join('|'), type, value };
}

/** Closed when its owner ends, if not before. */
export async function startStatsdReceiver(t: Owner): Promise<StatsdReceiver> {
  const port = await freePort();
  const totals = new Map<string, number>();
  const connections = new Set<Socket>();

  const readLines = (text: string): void => {
    for (const line of text.split('\n')) {
      const sample = parseStatsdLine(line);
      if (sample !== undefined) {
        const addend = sample.type === 'c' ? sample.value : 1;
        totals.set(sample.label, (totals.get(sample.label) ?? 0) + addend);
      }
    }
  };

  const tcp = createServer((socket) => {
    connections.add(socket);
    let rest = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      const end = chunk.lastIndexOf('\n');
      if (end >= 0) readLines(rest + chunk.slice(0, end));
      rest = end >= 0 ? chunk.slice(end + 1) : rest + chunk;
    });
    // A sender that is killed resets its connection.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => connections.delete(socket));
  });
  tcp.listen(port, '127.0.0.1');
  await once(tcp, 'listening');
  const udp = createSocket('udp4', (message) => readLines(message.toString()));
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    for (const socket of connections) socket.destroy();
    const closed = [once(tcp, 'close'), once(udp, 'close')];
    tcp.close();
    udp.close();
    await Promise.all(closed);
  };
  const closeOnce = () => {
    closing ??= close();
    return closing;
  };
  t.teardown(closeOnce);
  return { port, totals, close: closeOnce };
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}
