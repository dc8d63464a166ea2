// Every recorded case, with the settings under their established names.
import { testAllCases } from './case-tests.ts';

testAllCases('established');
