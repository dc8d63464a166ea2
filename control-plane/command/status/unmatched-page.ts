// Reads a worker's page of traffic that matches no rule from its debug port: the control plane has only
// configuration streams to workers, which carry nothing about requests.
import { errorText } from '../../../shared/errors.ts';

export interface UnmatchedPage {
  /** The given address, without what follows the port. */
  readonly worker: string;
  /** Undefined when it could not be read. */
  readonly lines: readonly string[] | undefined;
  /** Why not, for people. */
  readonly error: string | undefined;
}

const timeoutMs = 10_000;
/** Twice the size of the largest page. */
const maxBytes = 4 * 1024 * 1024;

/** Undefined for a text that is not the address of a debug port. */
export function parseDebugUrl(text: string): URL | undefined {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  const isPlain = url?.username === '' && url.password === '';
  return url && isPlain && /^https?:$/.test(url.protocol) ? new URL('/unmatched', url) : undefined;
}

/** Never rejects. */
export async function readUnmatchedPage(url: URL): Promise<UnmatchedPage> {
  const worker = url.host;
  try {
    const answer = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) });
    const text = answer.status === 200 ? await readBounded(answer) : undefined;
    // A worker without this page answers with the list of its pages.
    if (text === undefined || /^\/debug\/pprof\//.test(text)) {
      await answer.body?.cancel().catch(() => {});
      return { worker, lines: undefined, error: 'there is no page /unmatched at this address' };
    }
    return { worker, lines: text.split('\n').filter((line) => line !== ''), error: undefined };
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    return { worker, lines: undefined, error: errorText(cause) };
  }
}

async function readBounded(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the page is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
