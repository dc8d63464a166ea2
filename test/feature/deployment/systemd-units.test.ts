// Tests the units for systemd, checked by systemd itself if it is installed.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parseControlPlaneSettings } from '../../../control-plane/server/settings.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const folder = join(import.meta.dirname, '..', '..', '..', 'compose', 'systemd');
/** The longest time that the programs take to stop, in seconds (worker/docs/operating.md). */
const stopSeconds = 15;

/** The values of each key, in order. */
function parseUnit(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  let section = '';
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, name] = /^\[(\w+)\]$/.exec(line) ?? [];
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) section = name;
    else if (key === undefined || value === undefined)
      throw new Error(`no line of a unit: ${line}`);
    else found.set(`${section}.${key}`, [...(found.get(`${section}.${key}`) ?? []), value]);
  }
  return found;
}

const units = [
  ['ratelane-worker.service', 'ratelane worker'],
  ['ratelane-control-plane.service', 'ratelane control-plane serve'],
] as const;

for (const [name, command] of units) {
  test(`${name} starts its program with room for its connections, and ends it as the program requires`, (t) => {
    const unit = parseUnit(readFileSync(join(folder, name), 'utf8'));
    const one = (key: string) => unit.get(`Service.${key}`)?.at(-1);
    t.is(one('ExecStart'), `/usr/local/bin/${command}`);
    t.is(one('KillMode'), 'mixed', 'the first process alone gets SIGTERM');
    t.true(Number(one('TimeoutStopSec')) > stopSeconds);
    t.true(Number(one('LimitNOFILE')) >= 65_536);
    t.is(one('Restart'), 'on-failure');
    t.is(one('MemoryDenyWriteExecute'), undefined);
    const own = unit.get('Service.Environment') ?? [];
    // systemd's own folder for states.
    const environment = Object.fromEntries(
      own.map((each) => each.replace('%S', '/var/lib').split('=')),
    );
    if (command.includes('serve')) {
      const parsed = parseControlPlaneSettings({ ...environment, RATELANE_CONFIG_DIR: '/rules' });
      t.is(parsed.ok && parsed.settings.stateDirectory, `/var/lib/${one('StateDirectory')}`);
    }
  });

  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
  test(`${name} is a unit that systemd accepts without a warning`, (t) => {
    if (!hasSystemd) {
      t.pass('systemd is not installed here');
      return;
    }
    const copies = createTemporaryFolder(t);
    const text = readFileSync(join(folder, name), 'utf8');
    const verify = (given: string) => {
      writeFileSync(join(copies, name), given.replace('/usr/local/bin/ratelane', process.execPath));
      const args = ['verify', '--recursive-errors=no', '--man=no', join(copies, name)];
      return spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    };
    const { status, stderr } = verify(text);
    t.deepEqual([status, stderr], [0, '']);
    t.regex(verify(text.replace('TimeoutStopSec=30', 'TimeoutStopSeconds=30')).stderr, /Unknown/);
  });
}
