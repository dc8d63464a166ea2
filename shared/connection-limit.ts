// How many connections a listener has at once: what comes beyond is closed before anything is read.
import type { Server } from 'node:net';

/** `onRefused` hears of each that was closed. */
export function limitConnections(server: Server, max: number, onRefused: () => void): void {
  server.maxConnections = max;
  // With several processes the runtime would else hand such a connection from one to the next for ever.
  Object.assign(server, { dropMaxConnection: true });
  server.on('drop', onRefused);
}
