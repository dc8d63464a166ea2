import test from 'ava';
import fc from 'fast-check';
import { testScenarios } from '../../test/support/scenarios.ts';
import { bool, choice, duration, float, int, list, map, port, text } from './kind.ts';
import { readSetting } from './parse-settings.ts';
import type { Setting } from './setting.ts';

const row = { names: ['X'], doc: 'For a test' } as const;

const kinds: Readonly<Record<string, Setting<unknown>>> = {
  text: text({ ...row, default: 'd' }),
  'text-or-e': text({ ...row, default: 'd', emptyMeans: 'e' }),
  bool: bool({ ...row, default: false }),
  int: int({ ...row, default: 7 }),
  'int-from-3-to-5': int({ ...row, default: 4, min: 3, max: 5 }),
  'int-from-0': int({ ...row, default: 0, min: 0, example: 512 }),
  'int-to-9': int({ ...row, default: 0, max: 9 }),
  port: port({ ...row, default: 80 }),
  float: float({ ...row, default: 0.8 }),
  'float-from-0-to-1': float({ ...row, default: 0.8, min: 0, max: 1 }),
  duration: duration({ ...row, default: 5_000 }),
  'duration-above-0': duration({ ...row, default: undefined, min: 1, example: 600_000 }),
  seconds: duration({ ...row, default: 0, bareUnit: 's', example: 30_000 }),
  list: list({ ...row, example: 'a,b' }),
  map: map({ ...row, example: 'env:prod' }),
  'tcp-or-udp': choice({ ...row, words: { tcp: 1, udp: 2 }, default: 1 }),
  'a-or-nothing': choice({ ...row, words: { A: 1, '': 2 }, default: 1 }),
  level: choice({
    ...row,
    words: { info: 1, warning: 2, '': 3, debug: 4 },
    default: 1,
    anyCase: true,
  }),
};

// Proof of migrating.md: A duration is at most 480h
testScenarios(test, new URL('kinds.txt', import.meta.url), ([kind = '', ...texts]) => {
  const setting = kinds[kind];
  if (setting === undefined) throw new Error(`no such kind: ${kind}`);
  const lines = texts.map((given) => {
    const { value, problems, given: by } = readSetting(setting, { X: given });
    const isRead = by?.name === 'X' && by.text === given && problems.length === 0;
    if (!isRead && value !== setting.default) return `${given}: not the default: ${value}`;
    return isRead ? `${JSON.stringify(given)} is ${JSON.stringify(value)}` : problems.join();
  });
  return { out: lines.join('\n') };
});

test('no text makes a kind throw, and each value can be read again from its formatted text', (t) => {
  const likely = fc.string({ unit: fc.constantFrom(...'0123456789.,:+-_xobeEahmsnuTF ') });
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.values(kinds)),
      fc.oneof(likely, fc.string()),
      (setting, given) => {
        const result = setting.parse(given);
        if (!result.ok) {
          t.not(result.reason, '');
          return;
        }
        t.deepEqual(setting.parse(setting.format(result.value)), result);
      },
    ),
    { numRuns: 2_000 },
  );
});
