// Runs a test's own servers.
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Owner } from './owner.ts';

/** Listens on this machine until the test is over, and then ends all connections; returns the port. */
export async function listenFor(t: Owner, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}
