import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { toOperation } from './batch.ts';
import { createKnownExpiries } from './known-expiries.ts';
import { createOperationCodec } from './operation-codec.ts';
import { createScriptSupport } from './script-support.ts';

test('a lifetime is sent again after an increment whose answer was lost', (t) => {
  const codec = createOperationCodec({
    name: 'store',
    knownExpiries: createKnownExpiries(),
    scripts: createScriptSupport('store', 'REDIS_URL', createRecordedLog()),
    clock: createManualClock(),
    jitterMaxSeconds: 0,
  });
  const encode = () => codec.encode([{ ...toOperation('add', 'k', 60), amount: 1, hitCount: 1 }]);
  codec.decode(encode(), [1, 1]);
  const known = encode();
  t.is(known.commands.length, 1);
  // The counter had gone meanwhile, and was made anew without a lifetime: the next answer is 2.
  codec.decode(known, [new Error('the connection was closed')]);
  t.is(encode().commands.length, 2);
});
