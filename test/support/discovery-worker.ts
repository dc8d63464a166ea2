// A worker that consists only of a discovery stream: what it receives, and whether it accepts it.
import { instanceKey } from '../../shared/instance-key.ts';
import { callDiscovery, discoveryProtos } from './ads-fixture.ts';
import type { Owner } from './owner.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;

/** Longer than any test. */
const longestMs = 1_800_000;

export interface DiscoveryWorker {
  readonly id: string;
  /** Whether the resources that it received last contain this text. */
  sees(text: string): boolean;
  readonly seen: readonly string[];
}

/** Accepts everything except a resource with the name `refused`. `instance`: null for a worker of another make. */
export function connectWorker(
  t: Owner,
  port: number,
  id: string,
  instance: string | null = id,
): DiscoveryWorker {
  const stream = callDiscovery(t, port, sotw);
  const fields = instance === null ? {} : { [instanceKey]: { stringValue: instance } };
  const node = { id, metadata: { fields } };
  let version = '';
  const seen: string[] = [];
  stream.send({ node });
  void (async () => {
    for (;;) {
      const response = await stream.next(longestMs);
      const bytes = response.resources?.map(({ value }) => value?.toString()).join() ?? '';
      seen.push(bytes);
      const isRefused = bytes.includes('refused');
      if (!isRefused) version = response.versionInfo ?? '';
      const errorDetail = isRefused ? { code: 3, message: 'no such unit' } : undefined;
      const responseNonce = response.nonce ?? '';
      stream.send({ versionInfo: version, responseNonce, ...(errorDetail && { errorDetail }) });
    }
    // Until the stream ends.
  })().catch(() => {});
  return { id, sees: (text: string) => seen.at(-1)?.includes(text) ?? false, seen };
}
