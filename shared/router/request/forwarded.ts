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
    // A proxy of one kind passes on what a client sends of the other, so only what both report counts.
    const [hop, other = hop] = [readForwarded(request.headers), readOlder(request.headers, peer)]
      .filter((hops) => hops.length > 0)
      .map((hops) => hops.findLast(({ address }) => !isTrusted(address)) ?? hops[0]);
    if (hop === undefined || other === undefined) return request;
    const address = hop.address === other.address ? hop.address : undefined;
    const host = hop.host === other.host ? hop.host : undefined;
    const scheme = hop.scheme === other.scheme ? hop.scheme : undefined;
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

/** RFC 7239, ordered from the client's side. */
function readForwarded(headers: Headers): Hop[] {
  return listOf(splitOutsideQuotes(headers.get('forwarded') ?? '', ',')).map((text) => {
    // A list of parameters like that of a media type.
    const parameters = parseMediaType(`x/x;${text}`)?.parameters;
    return {
      address: toAddress(parameters?.get('for')),
      host: parameters?.get('host'),
      scheme: parameters?.get('proto')?.toLowerCase(),
    };
  });
}

/** X-Forwarded-For, -Host and -Proto, in the same order. */
function readOlder(headers: Headers, peer: string): Hop[] {
  const [addresses = [], hosts = [], schemes = []] = ['for', 'host', 'proto'].map((name) =>
    listOf((headers.get(`x-forwarded-${name}`) ?? '').split(',')),
  );
  // A proxy that reports no address is treated as the client.
  if (addresses.length === 0 && hosts.length + schemes.length > 0) addresses.push(peer);
  // Most proxies report host and scheme only once.
  const at = (list: string[], index: number) =>
    list.length === addresses.length ? list[index] : list.at(-1);
  return addresses.map((address, index) => ({
    address: toAddress(address),
    host: at(hosts, index),
    scheme: at(schemes, index)?.toLowerCase(),
  }));
}

/** Without the empty items that a list may have (RFC 9110, section 5.6.1). */
function listOf(items: readonly string[]): string[] {
  return items.map((text) => text.trim()).filter((text) => text !== '');
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
