// `host:port` in the form that the command accepts.
import { type HostPort, parseHostPort } from '../../host-port.ts';

const defaultHost = 'localhost';
const defaultPort = 8000;

/** `localhost:8000`, `[::1]:8000`, `0.0.0.0`, `:8000`; undefined for anything else, including a number alone: it would
 * be read as an address, but was intended as a port. Port 0 selects a free one. */
export function parseListenAddress(text: string): HostPort | undefined {
  if (/^\d*$/.test(text)) return undefined;
  const parsed = parseHostPort(/^[^:]*$|\]$/.test(text) ? `${text}:${defaultPort}` : text, 0);
  if (!parsed.ok) return undefined;
  const { host, port } = parsed.value;
  return { host: host === '' ? defaultHost : host, port };
}
