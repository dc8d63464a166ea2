import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRulesFolder } from '../../test/support/rules-folder.ts';
import { openRecordFile } from './record.ts';

const record = {
  revision: 'a'.repeat(40),
  outcome: 'running' as const,
  step: 1,
  limit: 0.25,
  reason: '',
};

test('the newest record of a store is found again, and no other store finds it', async (t) => {
  const log = createRecordedLog();
  const { path } = createRulesFolder(t);
  const file = openRecordFile(join(path, 'state'), 'one store', log);
  t.is(await file.read(), undefined);
  file.keep(record);
  file.keep({ ...record, step: 2 });
  await file.settled();
  t.like(await openRecordFile(join(path, 'state'), 'one store', log).read(), {
    ...record,
    step: 2,
  });
  t.is(await openRecordFile(join(path, 'state'), 'another', log).read(), undefined);
  t.deepEqual(log.lines, []);
});

test('a record that is damaged, or cannot be written, is said and passed over', async (t) => {
  const log = createRecordedLog();
  const { path } = createRulesFolder(t);
  writeFileSync(join(path, 'rollout.json'), '{"format":1');
  t.is(await openRecordFile(path, 'a store', log).read(), undefined);
  writeFileSync(join(path, 'rollout.json'), '{"format":1,"store":"a store","step":-1}');
  t.is(await openRecordFile(path, 'a store', log).read(), undefined);
  const nowhere = openRecordFile(join(path, 'rollout.json'), 'a store', log);
  nowhere.keep(record);
  await nowhere.settled();
  t.is(log.lines.length, 3);
  t.regex(log.lines[1] ?? '', /rollout\.json cannot be read \(it is not the record of a rollout\)/);
  t.regex(log.lines[2] ?? '', /cannot be written \(.*\): a restart begins the rollout of a+ anew/);
});
