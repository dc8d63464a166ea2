// A server under comparison, as a separate process: reports its port and, on each message, the CPU time used so far.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export type ServerReport = { readonly port: number } | { readonly cpuUs: number };

/** `server` must not be listening yet. */
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
  // Without a parent, the answers have no receiver.
  process.once('disconnect', () => process.exit());
  report({ port: (server.address() as AddressInfo).port });
}
