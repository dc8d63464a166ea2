// Ports for servers that a test starts in another process, where port 0 cannot be used.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the range that Linux uses for outgoing connections, so that none of those takes the port meanwhile.
const firstPort = 12_000;
const lastPort = 30_000;
const attempts = 100;
/** A returned port stays free until its server listens, so it is reserved meanwhile: here for this process, and by a
 * socket with that name for all other test processes. */
const given = new Set<number>();
const canClaim = process.platform === 'linux';

/** A loopback port that is currently unused, both over TCP and over UDP, and that has not been returned before, neither
 * to this process nor to another test process. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort));
    if (given.has(port)) continue;
    given.add(port);
    if (canClaim && !(await claim(port))) continue;
    if ((await isFreeForTcp(port)) && (await isFreeForUdp(port))) return port;
  }
  throw new Error(`no free port between ${firstPort} and ${lastPort}`);
}

/** False when another process holds it. The kernel releases the claim when this process ends. */
async function claim(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(`\0ratelane-test-port-${port}`);
    await once(server, 'listening');
    server.unref();
    return true;
  } catch {
    return false;
  }
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
