// A server under comparison, as a process of its own: tells its port, and on each message what CPU time it has
// used so far.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export type ServerReport = { readonly port: number } | { readonly cpuUs: number };

/** Takes a server that is not listening yet. */
export async function serve(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const report = (message: ServerReport): void => {
    process.send?.(message);
  };
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    report({ cpuUs: user + system });
  });
  // Without a parent there is nobody to answer.
  process.once('disconnect', () => process.exit());
  report({ port: (server.address() as AddressInfo).port });
}
