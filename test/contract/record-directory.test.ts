// The contract of killed processes for the record in a state directory.
import test from 'ava';
import { testRecordKills } from './record-kills.ts';

testRecordKills(test, { name: 'directory', prepare: () => ({ open: () => undefined }) });
