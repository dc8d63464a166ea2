// What proxies in front report about the client: trusted only from the proxies that the application lists, since any
// client can send the same headers (RFC 7239, and X-Forwarded-For, -Host and -Proto).
import { BlockList, isIP } from 'node:net';
import { ListedHeaders } from './listed-headers.ts';
import { parseMediaType, splitOutsideQuotes } from './media-type.ts';
import { hostForm, type RequestLike } from './request.ts';

/** One proxy's report on its peer. */
interface Hop {
  readonly address: string | undefined;
  readonly host: string | undefined;
  readonly scheme: string | undefined;
}

/** `trusted`: addresses and networks of the proxies, `10.0.0.0/8`. Throws a TypeError that names each invalid one. The
 * returned function, undefined without proxies, replaces the proxy by the client: its address, and the host and scheme
 * that it requested. */
export function createForwarding(
  trusted: readonly string[],
): ((request: RequestLike) => RequestLike) | undefined {
  if (trusted.length === 0) return undefined;
  const networks = new BlockList();
  for (const text of trusted) addNetwork(networks, text);
  const isTrusted = (address: string | undefined): address is string =>
    address !== undefined && networks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

  return (request) => {
    const peer = toAddress(request.remoteAddress);
    if (!isTrusted(peer)) return request;
    // The last report is that of the proxy connected to this server.
    const hops = readHops(request.headers, peer).reverse();
    const known = hops.findIndex(({ address }) => !isTrusted(address));
    const hop = known < 0 ? hops.at(-1) : hops[known];
    if (hop === undefined) return request;
    const { address, host, scheme } = hop;
    const isScheme = scheme === 'https' || scheme === 'http';
    return {
      ...request,
      remoteAddress: address,
      ...(isScheme && { scheme }),
      headers:
        host !== undefined && hostForm.test(host)
          ? withHost(request.headers, host)
          : request.headers,
    };
  };
}

function addNetwork(networks: BlockList, text: string): void {
  const [address = '', bits, more] = text.split('/');
  const version = isIP(address);
  const most = version === 6 ? 128 : 32;
  const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (version === 0 || more !== undefined || !(length <= most)) {
    throw new TypeError(`trustedProxies: ${text} is no address and no network, such as 10.0.0.0/8`);
  }
  networks.addSubnet(address, length, version === 6 ? 'ipv6' : 'ipv4');
}

/** Ordered from the client's side. */
function readHops(headers: Headers, peer: string): Hop[] {
  const forwarded = headers.get('forwarded');
  if (forwarded !== null) {
    return splitOutsideQuotes(forwarded, ',').map((text) => {
      // A list of parameters like that of a media type.
      const parameters = parseMediaType(`x/x;${text}`)?.parameters;
      return {
        address: toAddress(parameters?.get('for')),
        host: parameters?.get('host'),
        scheme: parameters?.get('proto')?.toLowerCase(),
      };
    });
  }
  const listOf = (name: string) => (headers.get(name) ?? '').split(',').map((text) => text.trim());
  const [hosts, schemes] = [listOf('x-forwarded-host'), listOf('x-forwarded-proto')];
  // A proxy that reports no address is treated as the client.
  const addresses = headers.has('x-forwarded-for') ? listOf('x-forwarded-for') : [peer];
  // Most proxies report host and scheme only once.
  const at = (list: string[], index: number) =>
    (list.length === addresses.length ? list[index] : list.at(-1)) || undefined;
  return addresses.map((address, index) => ({
    address: toAddress(address),
    host: at(hosts, index),
    scheme: at(schemes, index)?.toLowerCase(),
  }));
}

/** Removes the port; undefined if the text is not an address, such as `unknown`. */
function toAddress(text = ''): string | undefined {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([^:]+))(?::[\w.-]+)?$/.exec(text) ?? [];
  const address = (bracketed ?? plain ?? text).replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(address) === 0 ? undefined : address;
}

function withHost(headers: Headers, host: string): Headers {
  const changed = new ListedHeaders([...headers].flat());
  changed.set('host', host);
  return changed;
}
