// Every recorded case once more, with the settings under the neutral names of the specification.
import { testAllCases } from './case-tests.ts';

testAllCases('neutral');
