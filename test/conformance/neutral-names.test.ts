// Every recorded case once more, with the settings under their neutral names
// (behaviour: two-names).
import { testAllCases } from './case-tests.ts';

testAllCases('neutral');
