// `host:port` as the command takes it.

export interface ListenAddress {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

const defaultHost = 'localhost';
const defaultPort = 8000;

/** `localhost:8000`, `[::1]:8000`, `0.0.0.0`, `:8000`; undefined for what is none of these, as a
 * number alone: it would be the address that it stands for, and was meant as a port. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s/]*))(?::(\d{1,5}))?$/.exec(text);
  if (match === null || text === '' || /^\d+$/.test(text)) return undefined;
  const port = match[3] === undefined ? defaultPort : Number(match[3]);
  const host = match[1] ?? match[2] ?? '';
  return port > 65_535 ? undefined : { host: host === '' ? defaultHost : host, port };
}

export function toHostPort({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
