// Tests that waits that clients must end are extended by the time in which this process was stalled.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createPatientClock } from './patient-clock.ts';

test('while the process is not stalled, a wait takes its nominal time', (t) => {
  const clock = createManualClock();
  let ran = 0;
  createPatientClock(clock).after(20_000, () => ran++);
  clock.advance(19_999);
  t.is(ran, 0);
  clock.advance(1);
  t.is(ran, 1);
  clock.advance(1_000);
  t.is(clock.pending, 0);
});

test('a stall of a minute counts as two seconds, however often it happens', (t) => {
  const clock = createManualClock();
  let ran = 0;
  createPatientClock(clock).after(20_000, () => ran++);
  clock.advance(10_000);
  clock.stall(60_000);
  clock.stall(60_000);
  t.is(ran, 0);
  clock.advance(5_999);
  t.is(ran, 0);
  clock.advance(1);
  t.is(ran, 1);
});

test('a wait that begins after a stall is not extended for it', (t) => {
  const clock = createManualClock();
  const patient = createPatientClock(clock);
  patient.after(100_000, () => {});
  clock.stall(60_000);
  let ran = 0;
  patient.after(5_000, () => ran++);
  clock.advance(5_000);
  t.is(ran, 1);
});

test('a cancelled wait leaves nothing behind', (t) => {
  const clock = createManualClock();
  const cancel = createPatientClock(clock).after(20_000, () => t.fail('it was cancelled'));
  clock.stall(60_000);
  cancel();
  cancel();
  clock.advance(60_000);
  t.is(clock.pending, 0);
});
