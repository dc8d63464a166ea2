// Ports for servers that a test starts in another process, where port 0 cannot be used.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below what Linux gives to outgoing connections, so that none of those takes the port meanwhile.
const firstPort = 12_000;
const lastPort = 30_000;
const attempts = 100;
/** What was given away stays free until its server listens. */
const given = new Set<number>();

/** A loopback port that nothing uses at the moment, neither over TCP nor over UDP, and that this process
 * was not given before. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort));
    if (given.has(port)) continue;
    given.add(port);
    if ((await isFreeForTcp(port)) && (await isFreeForUdp(port))) {
      return port;
    }
  }
  throw new Error(`no free port between ${firstPort} and ${lastPort}`);
}

async function isFreeForTcp(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

async function isFreeForUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind(port, '127.0.0.1');
    await once(socket, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
}
