import test from 'ava';
import { defaultLimits } from './limits.ts';

test('as many workers as may connect have room for their rules and their link, and for nothing more', (t) => {
  t.is(defaultLimits.maxStreams, 2 * defaultLimits.maxConnections);
});
