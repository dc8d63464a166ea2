import test from 'ava';
import type { StatusJson } from '../../server/admin/status-report.ts';
import type { CommandIo } from '../command-frame.ts';
import { writeFleetStatus } from './fleet-status.ts';

function errorsOf(verdict: StatusJson['verdict'], reachable: boolean): string {
  let errors = '';
  const status = {
    ...{ verdict, text: '', traffic: null, newest: null, rolloutWarning: null },
    ...{ disagreements: [], unenforced: [], controlPlanes: [] },
    memory: { place: 'beside the rules', problem: null },
    store: {
      description: 'the repository',
      reachable,
      lastSuccess: null,
      failingSince: reachable ? null : '2026-11-24T10:00:00.000Z',
      error: reachable ? null : 'connection refused',
    },
  } as unknown as StatusJson;
  const clock = { wallMs: () => Date.parse('2026-11-25T10:00:00.000Z') };
  const io = { clock, write() {}, writeError: (text: string) => (errors += text) };
  writeFleetStatus(
    { status, verdict: { verdict, outcome: 'pending', text: '' } as never },
    io as unknown as CommandIo,
  );
  return errors;
}

test('a verdict about the last revision seen includes that the store cannot be reached', (t) => {
  const warning =
    /^warning: the repository has not been reached since 2026-11-2\d \d\d:\d\d: whether there is a newer revision is not known \(connection refused\)\n$/;
  t.regex(errorsOf('invalid', false), warning);
  t.regex(errorsOf('held_back', false), warning);
  t.regex(errorsOf('taken_back', false), warning);
  t.is(errorsOf('invalid', true), '');
  t.is(errorsOf('pending', false), '', 'its text includes that');
});
