import test from 'ava';
import { ask } from '../../test/support/decision-worker.ts';
import { toDynamicMetadata } from './dynamic-metadata.ts';
import { codes } from './message.ts';

test('an unknown unit of a limit in the request is shown as its number', (t) => {
  const request = ask({ of: 'k=v', limit: { requestsPerUnit: 1, unit: 9 } });
  const limitRemaining = 0;
  const statuses = [
    { code: codes.ok, currentLimit: undefined, limitRemaining, secondsUntilReset: undefined },
  ];
  t.like(toDynamicMetadata(request, [undefined], statuses), {
    descriptors: [{ limit: 'requests_per_unit:1 unit:9' }],
  });
});
