// Parses the addresses of management servers, a comma-separated list. An invalid one must not prevent workers from
// using the others.
import { parseHostPort } from '../../shared/host-port.ts';

export interface ServerAddresses {
  /** The valid addresses, each once, in the order of the list. */
  readonly addresses: readonly string[];
  /**
   * The problems of the other addresses: `address 2: the port is ...`. The texts do not quote the address, which may
   * contain a secret.
   */
  readonly problems: readonly string[];
}

/** Schemes of names in gRPC, except that of files. */
const schemes = /^(?:dns|ipv4|ipv6):/;

export function parseServerAddresses(text: string): ServerAddresses {
  const addresses = new Set<string>();
  const problems: string[] = [];
  for (const [index, item] of text.split(',').entries()) {
    const address = item.trim();
    const problem = findProblem(address);
    if (problem === undefined) addresses.add(address);
    else problems.push(`address ${index + 1}: ${problem}`);
  }
  return { addresses: [...addresses], problems };
}

function findProblem(address: string): string | undefined {
  if (address === '') return 'empty';
  if (address.startsWith('unix:')) return undefined;
  if (/[@?]/.test(address)) return 'it has a user, or parameters';
  if (schemes.test(address)) return undefined;
  if (address.includes('://')) return 'it begins with a scheme such as http://';
  // The default is gRPC's usual port.
  const result = parseHostPort(address.includes(':') ? address : `${address}:443`, 1);
  if (!result.ok) return result.reason;
  return result.value.host === '' ? 'the host is missing' : undefined;
}
