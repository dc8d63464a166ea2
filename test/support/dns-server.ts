// A DNS server for SRV records, as far as a test needs one: over UDP on a loopback port, with records that can be
// changed, refused, or left without an answer.
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';

export interface DnsServer {
  /** `127.0.0.1:port`, the format of resolvers. */
  readonly address: string;
  /** The number of queries so far. */
  readonly asked: number;
  /** Answers queries for `name` with these records; without any, the name does not exist. */
  setSrv(
    name: string,
    records: readonly { readonly target: string; readonly port: number }[],
  ): void;
  /** `failing`: every answer is a server failure. `silent`: there is no answer. */
  behave(how: 'normal' | 'failing' | 'silent'): void;
  close(): Promise<void>;
}

const typeSrv = 33;
const classInternet = 1;
const codes = { ok: 0, serverFailure: 2, noSuchName: 3 };

export async function startDnsServer(): Promise<DnsServer> {
  const records = new Map<string, readonly { readonly target: string; readonly port: number }[]>();
  let behaviour: Parameters<DnsServer['behave']>[0] = 'normal';
  let asked = 0;
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    asked++;
    if (behaviour !== 'silent') reply(query, from);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');

  function reply(query: Buffer, from: RemoteInfo): void {
    const { name, end } = readName(query, 12);
    const found = records.get(name.toLowerCase()) ?? [];
    const code =
      behaviour === 'failing'
        ? codes.serverFailure
        : found.length === 0
          ? codes.noSuchName
          : codes.ok;
    const answers = code === codes.ok ? found : [];
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    // An answer, authoritative, recursion available.
    header.writeUInt16BE(0x8580 | code, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    // Type and class follow the name.
    const question = query.subarray(12, end + 4);
    const parts = answers.map(({ target, port }) => {
      const data = Buffer.concat([toUint16(0, 0, port), writeName(target)]);
      const ttl = [0, 0];
      // 0xc00c points to the question's name.
      return Buffer.concat([toUint16(0xc00c, typeSrv, classInternet, ...ttl, data.length), data]);
    });
    socket.send(Buffer.concat([header, question, ...parts]), from.port, from.address);
  }

  return {
    address: `127.0.0.1:${socket.address().port}`,
    get asked() {
      return asked;
    },
    setSrv(name, targets) {
      records.set(name.toLowerCase(), targets);
    },
    behave(how) {
      behaviour = how;
    },
    async close() {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function toUint16(...numbers: number[]): Buffer {
  const buffer = Buffer.alloc(numbers.length * 2);
  for (const [index, number] of numbers.entries()) buffer.writeUInt16BE(number, index * 2);
  return buffer;
}

/** The name at `offset` of a query, which is never compressed, and where it ends. */
function readName(message: Buffer, offset: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = offset;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), end: at + 1 };
}

function writeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from(`\0${label}`, 'latin1'));
  for (const label of labels) label[0] = label.length - 1;
  return Buffer.concat([...labels, Buffer.alloc(1)]);
}
