// Starts with nonsensical environments: each wrong setting is named, all of them at once.
import test from 'ava';
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { parseControlPlaneSettings } from '../../control-plane/server/settings.ts';
import { type Setting, type SettingsTable, toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { parseWorkerSettings } from '../../worker/settings.ts';
import type { Random } from '../support/random.ts';
import { damageText, strangeWords } from './damage.ts';
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const ofKind: Readonly<Record<Setting<unknown>['kind'], readonly string[]>> = {
  text: ['a', 'localhost:1', 'redis://u:p@h:1/2', '/tmp/x', 'https://a.example/x.git', '[::1]:80'],
  bool: ['true', 'false', 'T', '0', 'yes'],
  int: ['0', '1', '-1', '8080', '0x10', '1_000', '99999999999999999999', '1.5'],
  float: ['0.5', '1e3', '.5', '5.', '1e999', '-0', 'Infinity'],
  duration: ['1s', '10m', '1h30m', '-1s', '.5s', '1', '292y', '1e3s', '99999999999h', '5'],
  list: ['a,b', 'a', ',', 'A,,B', 'x:1,y:2'],
  map: ['a:b', 'a:b,c:d', 'a', ':', '__proto__:a', 'a:b:c'],
  choice: ['redis', 'memory', 'memcache', 'single', 'cluster', 'SENTINEL', 'file', 'debug', 'text'],
};
const words = [':', ',', '=', '@', '://', '0', '-', '.', 's', 'true', '%', '[', ']', '/', ' ', '?'];

function toEnvironment(random: Random, table: SettingsTable): Record<string, string> {
  const rows = toRows(table);
  // Without a store neither program starts.
  const environment: Record<string, string> = random.chance(0.9)
    ? { REDIS_URL: 'localhost:1', REDIS_SOCKET_TYPE: 'tcp', RATELANE_CONFIG_DIR: '/rules' }
    : {};
  for (let count = random.below(4); count >= 0; count--) {
    const { setting } = random.pick(rows);
    const good = setting.format(setting.default) || random.pick(ofKind[setting.kind]);
    const text = random.chance(0.7) ? good : random.pick(ofKind[setting.kind]);
    const name = random.pick(setting.names);
    environment[random.chance(0.05) ? damageText(random, name, ['_', 'X']) : name] = random.chance(
      0.3,
    )
      ? damageText(random, text, random.chance(0.01) ? ['x'.repeat(50_000)] : words)
      : text;
  }
  if (random.chance(0.05)) environment[random.pick(strangeWords)] = random.pick(strangeWords);
  return environment;
}

type Parse = (environment: Record<string, string>) =>
  | { readonly ok: true; readonly warnings: readonly string[] }
  | {
      readonly ok: false;
      readonly warnings: readonly string[];
      readonly problems: readonly string[];
    };

function defineTest(
  program: string,
  table: SettingsTable,
  parse: Parse,
  needed: readonly string[],
) {
  const names = toRows(table).flatMap(({ setting }) => setting.names);
  test.serial(`any environment starts the ${program}, or is refused by its names`, async (t) => {
    let accepted = 0;
    await fuzz(t, `environments of the ${program}`, (random) => {
      const environment = toEnvironment(random, table);
      const result = parse(environment);
      const problems = result.ok ? [] : result.problems;
      if (result.ok) accepted++;
      else if (problems.length === 0) throw new Error('refused without a problem');
      for (const text of [...problems, ...result.warnings]) {
        checkNamedProblem(text);
        if (text.length > 2000) throw new Error(`${text.length} characters: ${text.slice(0, 200)}`);
        // Foreign values must have no effect on a terminal or in a log.
        const known = [...names, ...needed, ...Object.keys(environment)];
        if (!known.some((name) => text.includes(name))) throw new Error(`names nothing: ${text}`);
      }
    });
    t.log(`${accepted} accepted`);
    t.true(accepted > 0);
  });
}

defineTest('worker', workerTable, parseWorkerSettings, []);
defineTest('control plane', controlPlaneTable, parseControlPlaneSettings, []);
