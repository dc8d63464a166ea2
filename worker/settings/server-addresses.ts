// Reads the addresses of management servers, a comma-separated list. A wrong one is no reason to leave the
// workers without the others.
import { parseHostPort } from '../../shared/host-port.ts';

export interface ServerAddresses {
  /** The good ones, each once, in the order of the list. */
  readonly addresses: readonly string[];
  /** What is wrong with the other addresses: `address 2: the port is ...`. The texts do not quote the address, which may hold a secret. */
  readonly problems: readonly string[];
}

/** Schemes of gRPC's names, beside that of files. */
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
  // Without a port it is gRPC's usual one.
  const result = parseHostPort(address.includes(':') ? address : `${address}:443`, 1);
  if (!result.ok) return result.reason;
  return result.value.host === '' ? 'the host is missing' : undefined;
}
