// What the operations of a store like Redis share, for tests without a server.
import type { Clock } from '../../shared/clock.ts';
import { createKnownExpiries } from '../../worker/counters/known-expiries.ts';
import type { OperationDeps } from '../../worker/counters/redis/operations.ts';
import { createScriptSupport } from '../../worker/counters/redis/script-support.ts';
import { createRecordedLog } from './recorded-log.ts';

export const createOperationDeps = (clock: Clock): OperationDeps => ({
  name: 'store',
  knownExpiries: createKnownExpiries(),
  scripts: createScriptSupport('store', 'REDIS_URL', createRecordedLog()),
  clock,
  jitterMaxSeconds: 0,
  describeRemedy: (failure) => (failure.startsWith('NOAUTH') ? 'write a password' : undefined),
});
