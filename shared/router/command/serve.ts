// Serves an application until a signal ends it.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type HostPort, showHostPort } from '../../host-port.ts';
import type { App } from '../app.ts';
import { StartError } from '../errors.ts';
import { createNodeServer } from '../mounts/node-http.ts';

export interface Serving {
  /** Its address, such as `http://localhost:8000`. */
  readonly url: string;
  /** Gives requests under way some time to finish. */
  stop(): Promise<void>;
}

const graceMs = 5_000;
const idleCheckMs = 50;

/** Rejects with a StartError that names the address. */
export async function startServing(app: App, address: HostPort): Promise<Serving> {
  const server = createNodeServer(app);
  server.listen(address);
  try {
    await once(server, 'listening');
  } catch (cause) {
    const { message } = cause as Error;
    throw new StartError([`cannot listen on ${showHostPort(address)}: ${message}`], { cause });
  }
  const { port } = server.address() as AddressInfo;
  return { url: `http://${showHostPort({ ...address, port })}`, stop: () => stop(app, server) };
}

async function stop(app: App, server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  app.endLive();
  // A connection that was busy when the server closed becomes idle later, and would remain open.
  const idle = setInterval(() => server.closeIdleConnections(), idleCheckMs);
  const grace = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(grace);
}
