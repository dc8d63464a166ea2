import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRulesFolder } from '../../test/support/rules-folder.ts';
import { openOwnText } from './own-text.ts';

const kept = { text: 'first', plane: 'p'.repeat(64), isAlone: false };

test('the newest text of a store is found again, and no other store finds it', async (t) => {
  const log = createRecordedLog();
  const folder = join(createRulesFolder(t).path, 'new', 'state');
  const own = openOwnText(folder, 'one store', log);
  t.is(await own.read(), undefined);
  own.keep(kept);
  own.keep({ ...kept, text: 'second', isAlone: true });
  await own.settled();
  t.deepEqual(await openOwnText(folder, 'one store', log).read(), {
    ...kept,
    text: 'second',
    isAlone: true,
  });
  t.is(await openOwnText(folder, 'another', log).read(), undefined);
  t.deepEqual(log.lines, []);
  t.is(statSync(join(folder, 'rollout.json')).mode & 0o777, 0o600);
  t.is(statSync(folder).mode & 0o777, 0o700);
});

for (const content of [
  '{"format":1',
  '{"store":"a store","text":1}',
  '7',
  `{"plane":"${'x'.repeat(65)}","store":"a store","text":"","isAlone":true}`,
]) {
  test(`a damaged text is logged, and done without: ${content.slice(0, 40)}`, async (t) => {
    const log = createRecordedLog();
    const { path } = createRulesFolder(t);
    writeFileSync(join(path, 'rollout.json'), content);
    t.is(await openOwnText(path, 'a store', log).read(), undefined);
    t.is(log.lines.length, 1);
    t.regex(
      log.lines[0] ?? '',
      /^warning .*rollout\.json cannot be read \(.+\): it is done without$/,
    );
  });
}

test('a failure to write is logged once, and again after a success', async (t) => {
  const log = createRecordedLog();
  const { path } = createRulesFolder(t);
  const folder = join(path, 'state');
  writeFileSync(folder, 'in its way');
  const own = openOwnText(folder, 'a store', log);
  const keep = async (text: string) => {
    own.keep({ ...kept, text });
    await own.settled();
  };
  await keep('first');
  await keep('second');
  t.is(log.lines.length, 1);
  t.regex(
    log.lines[0] ?? '',
    /rollout\.json cannot be written \(.+\): a restart knows no more than what is beside the rules/,
  );
  rmSync(folder);
  await keep('third');
  t.is(JSON.parse(readFileSync(join(folder, 'rollout.json'), 'utf8')).text, 'third');
  t.is(log.lines.length, 1);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, 'in its way');
  await keep('fourth');
  t.is(log.lines.length, 2);
});
