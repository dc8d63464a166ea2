// A worker that follows a control plane, and decisions of it meanwhile: what is in force.
import type { ExecutionContext } from 'ava';
import { eventually } from '../support/eventually.ts';
import { startWorker } from '../support/worker-in-process.ts';

export interface RulesFollower {
  readonly lines: readonly string[];
  /** Resolves when the limit of domain `d` is this. */
  becomes(requestsPerUnit: number): Promise<void>;
  /** The limit is this, and decisions on it are made, which wait for nothing that is away. */
  checkInForce(requestsPerUnit: number): Promise<void>;
}

export async function startFollower(
  t: ExecutionContext,
  address: string,
  requestsPerUnit: number,
): Promise<RulesFollower> {
  const worker = await startWorker(t, {
    env: {
      BACKEND_TYPE: 'memory',
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: address,
      CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
    },
  });
  const isInForce = async (requests: number) =>
    (await worker.page('/rlconfig')).includes(`requests_per_unit=${requests},`);
  const becomes = (requests: number) =>
    eventually(`a limit of ${requests}`, () => isInForce(requests));
  let asked = 0;
  await becomes(requestsPerUnit);
  return {
    lines: worker.log.lines,
    becomes,
    async checkInForce(requests) {
      for (let round = 0; round < 10; round++) {
        const { status, text } = await worker.decide(`k=${asked++}`);
        t.is(status, 200, text);
      }
      t.true(await isInForce(requests), `${requests} stays in force`);
    },
  };
}
