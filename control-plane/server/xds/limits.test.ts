import test from 'ava';
import { defaultLimits } from './limits.ts';

test('as many workers as may connect have room for their rules and for their link, and none else', (t) => {
  t.is(defaultLimits.maxStreams, 2 * defaultLimits.maxConnections);
});
