// The page in the address: `#/rules?domain=shop`. It follows the hash, so that the console works below any prefix, and
// no part of it is logged.
import { useEffect, useState } from 'preact/hooks';

export interface Route {
  readonly page: string;
  readonly params: URLSearchParams;
}

export function hrefOf(page: string, params: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(params).toString();
  return `#/${page}${query === '' ? '' : `?${query}`}`;
}

/** The parameters with some of them replaced; '' removes one. */
export function withParams(
  params: URLSearchParams,
  others: Readonly<Record<string, string>>,
): Record<string, string> {
  const all = Object.entries({ ...Object.fromEntries(params), ...others });
  return Object.fromEntries(all.filter(([, text]) => text !== ''));
}

/** Changes the address without a new entry in the history. */
export function replaceRoute(page: string, params: Readonly<Record<string, string>>): void {
  history.replaceState(null, '', hrefOf(page, params));
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const read = () => setHash(location.hash);
    window.addEventListener('hashchange', read);
    // Effects run some time after the first render; a link may have been followed meanwhile.
    read();
    return () => window.removeEventListener('hashchange', read);
  }, []);
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  return { page: path === '' ? 'fleet' : path, params: new URLSearchParams(query) };
}
