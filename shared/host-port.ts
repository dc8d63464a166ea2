// Parses and formats `host:port` as in settings and addresses, and finds hosts that only this machine can reach.
import { BlockList, isIP } from 'node:net';

export interface HostPort {
  /** Without the brackets of an IPv6 address; '' when the text has none. */
  readonly host: string;
  readonly port: number;
}

export type HostPortResult =
  | { readonly ok: true; readonly value: HostPort }
  | { readonly ok: false; readonly reason: string };

/** The port is a decimal number from `lowestPort` to 65535; the host may be empty. */
export function parseHostPort(text: string, lowestPort: 0 | 1): HostPortResult {
  const match = /^(?:\[([^\][]*)\]|([^:\][]*))(?::(.*))?$/s.exec(text);
  if (match === null) return bad('an IPv6 address needs brackets');
  const [, bracketed, plain, portText] = match;
  const host = bracketed ?? plain ?? '';
  if (!isHost(host)) return bad('the host has an invalid character');
  if (portText === undefined || portText === '') return bad('the port is missing');
  const port = Number(portText);
  const isPort = /^\d{1,5}$/.test(portText) && port >= lowestPort && port <= 65_535;
  if (!isPort) return bad(`the port is not a number from ${lowestPort} to 65535`);
  return { ok: true, value: { host, port } };
}

/** Accepts names in any script; `%` begins the zone of an IPv6 address. '' stands for the caller's default. */
export function isHost(text: string): boolean {
  return /^(?:[\p{L}\p{M}\p{N}_.-]*|[\da-f:.]+(?:%[\w.-]+)?)$/iu.test(text);
}

/** Puts an IPv6 address in brackets. */
export function showHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function bad(reason: string): HostPortResult {
  return { ok: false, reason };
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** `host` is a name or an address, without the brackets of an IPv6 address. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  if (name === 'localhost') return true;
  const family = isIP(name);
  return family !== 0 && loopback.check(name, family === 6 ? 'ipv6' : 'ipv4');
}
