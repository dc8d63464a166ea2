// envoy.service.rate_limit_quota.v3.RateLimitQuotaService: callers enforce by themselves the limits assigned here. Its
// code is loaded with the first stream.
import type { GrpcMethod } from '../grpc/method.ts';
import { openWhenLoaded } from '../listen/grpc/lazy-stream.ts';
import type { QuotaDeps, QuotaService } from './quota-service.ts';

const path = '/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas';

export interface Quota {
  readonly methods: readonly [path: string, method: GrpcMethod][];
  /** Lines for the debug port; none before the first stream. */
  describe(): readonly string[];
  close(): void;
}

export function createQuota(deps: QuotaDeps): Quota {
  let loading: Promise<QuotaService> | undefined;
  let service: QuotaService | undefined;
  let isClosed = false;

  async function load(): Promise<QuotaService> {
    const loaded = await import('./quota-service.ts');
    service = new loaded.QuotaService(deps);
    if (isClosed) service.close();
    return service;
  }

  return {
    methods: [
      [
        path,
        {
          kind: 'stream',
          open(caller) {
            loading ??= load();
            return openWhenLoaded(
              caller,
              loading.then((loaded) => (opened) => loaded.open(opened)),
              'the quota service',
            );
          },
        },
      ],
    ],
    describe: () => service?.describe() ?? [],
    close() {
      isClosed = true;
      service?.close();
    },
  };
}
