import test from 'ava';
import { Command } from 'commander';
import { testScenarios } from '../../test/support/scenarios.ts';
import { toSettingLines } from '../../test/support/setting-lines.ts';
import { addFlags, overlayFlags } from './settings/flags.ts';
import { controlPlaneTable } from './settings/table.ts';
import { parseControlPlaneSettings } from './settings.ts';

const base = {
  '--config-dir': '/rules',
  XDG_STATE_HOME: '/state',
  RATELANE_XDS_ADDRESS: 'localhost:18000',
};
const ofBase = parseControlPlaneSettings(base);
const defaults = new Set(ofBase.ok ? toSettingLines(ofBase.settings) : []);

// Proof of SECURITY.md: the same; with `--rollout` the start warns
testScenarios(test, new URL('settings/settings.txt', import.meta.url), (words) => {
  const given = words.filter((word) => word.includes('=')).map((word) => word.split(/=(.*)/s));
  const isAlone = words[0] === 'alone';
  const { '--xds-address': address, ...others } = Object.fromEntries(given);
  const environment = { ...(isAlone ? {} : base), ...others };
  if (address !== undefined) environment.RATELANE_XDS_ADDRESS = address;
  const result = parseControlPlaneSettings(environment);
  const warnings = result.warnings.map((text) => `warning: ${text}`);
  if (!result.ok) return { out: warnings.join('\n'), err: result.problems.join('\n'), code: 1 };
  const lines = toSettingLines(result.settings);
  const changed = isAlone ? lines : lines.filter((line) => !defaults.has(line));
  return { out: [...changed, ...warnings].join('\n') };
});

test('a user without a home directory is asked to name one for the state', (t) => {
  const homes = [
    () => '',
    () => {
      throw new Error('A system error occurred: uv_os_homedir returned ENOENT');
    },
  ];
  for (const readHome of homes) {
    const { XDG_STATE_HOME: _, ...homeless } = base;
    const result = parseControlPlaneSettings(homeless, readHome);
    t.deepEqual(result.ok ? [] : result.problems, [
      '--state-dir/RATELANE_STATE_DIR: the user has no home directory (HOME), so name a directory for the state',
    ]);
    t.true(parseControlPlaneSettings({ ...homeless, '--state-dir': '/s' }, readHome).ok);
    t.true(parseControlPlaneSettings(base, readHome).ok);
  }
});

/** The settings that the program reads from a command line. */
function settingsOf(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const command = new Command().exitOverride();
  addFlags(command, controlPlaneTable);
  command.parse(args, { from: 'user' });
  return parseControlPlaneSettings(overlayFlags(controlPlaneTable, environment, command.opts()));
}

test('a flag wins over its variable, and is named in messages', (t) => {
  const git = ['--git', 'https://git.example/r', '--git-path', 'rules', '--git-poll', '1s'];
  const result = settingsOf(git, { RATELANE_GIT: 'https://other.example/r' });
  t.true(result.ok);
  if (!result.ok || result.settings.config.kind !== 'git')
    return t.fail('the settings of a Git store were refused');
  const { config } = result.settings;
  t.like(config, { url: 'https://git.example/r', path: 'rules', pollMs: 1_000 });
  t.is(config.fetchTimeoutMs, 300_000);
  const wrong = settingsOf([...git, '--git-poll', '1'], { RATELANE_GIT_POLL: '30s' });
  t.deepEqual(wrong.ok ? [] : wrong.problems, [
    '--git-poll="1": the unit is missing (one of ns, us, ms, s, m, h); write a duration from 100ms to 480h such as 30s',
  ]);
});

test('a switch may be given without a value', (t) => {
  for (const [args, expected] of [
    [[], false],
    [['--merge-domains'], true],
    [['--merge-domains', 'false'], false],
  ] as const) {
    const result = settingsOf(['--config-dir', '/rules', ...args]);
    t.is(result.ok && result.settings.mergeDomains, expected);
  }
});
