// The recorded cases whose settings have neutral names, once more under these (behaviour: two-names). Each pair of
// names is held together in worker/settings.test.ts.
import { testAllCases } from './case-tests.ts';

testAllCases('neutral');
