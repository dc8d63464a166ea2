// The other control planes of a fleet, read from the text of `--peers`.
import { parseHostPort } from '../../../../shared/host-port.ts';

/** Peers by a name, such as pods behind a headless service: each address of the name is a peer. */
interface DnsPeers {
  readonly kind: 'dns';
  readonly host: string;
  readonly port: number;
}
interface UrlPeer {
  readonly kind: 'url';
  readonly url: URL;
}
export type PeerSource = DnsPeers | UrlPeer;

export type PeerListResult =
  | { readonly ok: true; readonly peers: readonly PeerSource[] }
  | { readonly ok: false; readonly reason: string };

const maxSources = 32;

/** Parses `http://a:18001,https://b:18001` or `dns:control-planes.rate-limit.svc:18001`, in any combination. */
export function parsePeers(text: string): PeerListResult {
  const peers: PeerSource[] = [];
  for (const part of text.split(',').map((each) => each.trim())) {
    const peer = part.startsWith('dns:') ? readDns(part.slice(4)) : readUrl(part);
    if (typeof peer === 'string') return { ok: false, reason: peer };
    peers.push(peer);
  }
  if (peers.length > maxSources) return { ok: false, reason: `more than ${maxSources} peers` };
  return { ok: true, peers };
}

/** The protocol for asking a peer; `dnsProtocol` applies to all names. */
export function protocolOf(source: PeerSource, dnsProtocol: 'http:' | 'https:'): string {
  return source.kind === 'dns' ? dnsProtocol : source.url.protocol;
}

/** Returns the reason for an invalid text. */
function readDns(text: string): DnsPeers | string {
  const parsed = parseHostPort(text, 0);
  if (parsed.ok && parsed.value.host !== '' && parsed.value.port > 0) {
    return { kind: 'dns', ...parsed.value };
  }
  return "'dns:' is followed by a name and a port, such as dns:control-planes:18001";
}

function readUrl(text: string): UrlPeer | string {
  const url = URL.parse(text);
  const isPlain = url?.username === '' && url.password === '' && url.search === '';
  if (url && isPlain && /^https?:$/.test(url.protocol) && url.hash === '') {
    return { kind: 'url', url };
  }
  // The text may contain a password.
  return 'a peer is the address of an admin API, such as http://control-plane-2:18001, or dns:NAME:PORT';
}
