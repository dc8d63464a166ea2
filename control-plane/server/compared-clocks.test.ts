import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { ComparedClocks } from './compared-clocks.ts';

const origin = 'https://b.example:18001';

function compare() {
  const clock = createManualClock();
  const log = createRecordedLog();
  const clocks = new ComparedClocks(clock, log);
  /** An answer by a clock that differs by so much, `tookMs` after it was asked for. */
  const answer = (theirsMs: number, tookMs = 0) => {
    const note = clocks.start();
    clock.advance(tookMs);
    note(origin, new Date(clock.wallMs() + theirsMs).toUTCString());
  };
  return { clock, log, clocks, answer };
}

for (const [theirsMs, tookMs, problem] of [
  [0, 0, undefined],
  [29_000, 0, undefined],
  [-29_000, 0, undefined],
  [
    95_000,
    0,
    /^the clock of this control plane is 1m3[45]s behind that of https:\/\/b\.example:18001$/,
  ],
  [
    -95_000,
    0,
    /^the clock of this control plane is 1m3[45]s ahead of that of https:\/\/b\.example:18001$/,
  ],
  // Their clock may have been read at any moment in between.
  [-32_000, 5_000, undefined],
] as const) {
  test(`a clock ${theirsMs} ms after this one, reported within ${tookMs} ms: ${problem ? 'off' : 'the same'}`, (t) => {
    const { clocks, answer } = compare();
    answer(theirsMs, tookMs);
    if (problem) t.regex(clocks.problem ?? '', problem);
    else t.is(clocks.problem, undefined);
  });
}

test('a difference of clocks is logged once, and its end once; an outdated comparison is not a problem', (t) => {
  const { clock, clocks, log, answer } = compare();
  for (let times = 0; times < 3; times++) answer(60_000);
  answer(0);
  t.is(clocks.problem, undefined);
  t.is(log.lines.length, 2, log.lines.join('\n'));
  t.regex(
    log.lines[0] ?? '',
    /behind that of https:\/\/b\.example:18001: new lifts are refused until the clocks agree$/,
  );
  answer(60_000);
  clock.advance(400_000);
  t.is(clocks.problem, undefined);
});

test('an answer without a time is ignored', (t) => {
  const { clocks } = compare();
  clocks.start()(origin, undefined);
  clocks.start()(origin, 'yesterday');
  t.is(clocks.problem, undefined);
});
