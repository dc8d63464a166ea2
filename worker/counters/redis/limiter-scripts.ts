// Limiters in Redis: one script for each algorithm decides about many hits on one counter in order, and returns the
// counter before them; limiter.ts computes each hit's result from it by the same steps. Time is the server's own.
// (behaviour: limiter-scripts)
import { createHash } from 'node:crypto';
import type { LimiterAlgorithm } from '../../../shared/rules/limit-shape.ts';
import { type LimiterWindow, unevenMs } from '../store.ts';
import { type CommandText, toBulkText } from './connection.ts';

export interface Script {
  readonly text: string;
  /** The script's name for EVALSHA. */
  readonly sha: string;
}

// ARGV of both scripts: limit, capacity, 1 if hits over the limit are counted, their own arguments, seconds of jitter,
// then pairs: a number of hits (negative for a refund), and how many times in a row it is requested. As many hits as
// fit are counted, the others are over the limit: in whole numbers, so the result is the same as one by one.
const countHits = `
local function take(room, highest, lowest, first)
  local limited = false
  for i = first, #ARGV, 2 do
    local hits, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
    if hits < 0 then
      room = room - hits * count
      if room >= highest then room, limited = highest, true end
    elseif hits > 0 then
      local taken = 0
      if room >= hits then taken = math.min(count, math.floor(room / hits)) end
      room = room - taken * hits
      if counts_over and taken < count then
        room = room - (count - taken) * hits
        if room < lowest then room, limited = lowest, true end
      end
    end
  end
  return room, limited
end`;

/**
 * KEYS[1] holds `<end of its window> <its hits> <hits of the previous window>`, in milliseconds of Unix time. ARGV from 4:
 * a window's start and length, and 1 if all windows have that length. Returns the two numbers of hits, the milliseconds
 * since this window began, and its length.
 *
 * A later end comes from a clock that was set back, or from other window boundaries: its hits count in the current
 * window, and this is stored, or they would count in every window until then. With windows of uneven length the
 * previous one may be shorter than this one, and the next one longer. Their boundaries follow the workers' clocks,
 * which may be ahead of the server's: a later window is then continued.
 */
const slidingWindow = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, counts_over = tonumber(ARGV[1]), ARGV[3] == '1'
local start, length, jitter = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[7]) * 1000
${countHits}
local uneven = 0
if ARGV[6] == '1' then start = now - (now - start) % length
else
  uneven = ${unevenMs}
  if now >= start + length then start = start + length end
end
local finish = start + length
local current, previous, corrected = 0, 0, false
local kept = redis.call('GET', KEYS[1])
if kept then
  local e, c, p = string.match(kept, '^(%d+) (%d+) (%d+)$')
  e, c, p = tonumber(e), tonumber(c), tonumber(p)
  if e > start then
    current, previous = c, p
    if ARGV[6] ~= '1' and e > now and e <= finish + length then start, finish = e - length, e
    else corrected = e ~= finish end
  elseif e > start - length + uneven then previous = c end
end
local elapsed = math.min(now - start, length)
local free = math.floor(limit - previous * (length - math.max(elapsed, 0)) / length + 1e-9)
local room = take(free - current, free, -4503599627370496, 8)
local after = free - room
if after ~= current or corrected then
  local ttl = 0
  if after > 0 then ttl = finish + length + uneven - now elseif previous > 0 then ttl = finish - now end
  if ttl > 0 then
    redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f', finish, after, previous), 'PX', string.format('%.0f', ttl + jitter))
  else
    redis.call('DEL', KEYS[1])
  end
end
return {previous, current, elapsed, length}`;

/**
 * KEYS[1] holds a time and how long from then until the bucket was full, in microseconds: two numbers, as
 * Unix time has too many digits for fractions of a microsecond. ARGV[4]: the length of a window. Returns
 * the time until the bucket is full, as a text with all digits, and that length.
 *
 * A state stored under a lower rate, a larger burst or a later clock is corrected, and the correction is stored even
 * when no hits are counted: else each read would make the same correction again.
 */
const tokenBucket = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, capacity, counts_over = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local length, jitter = tonumber(ARGV[4]), tonumber(ARGV[5])
${countHits}
if limit == 0 then return {'0', length} end
local full_in, corrected = 0, false
local kept = redis.call('GET', KEYS[1])
if kept then
  local at, was = string.match(kept, '^(%d+) (%S+)$')
  at = tonumber(at)
  full_in = math.max(0, tonumber(was) - math.max(0, now - at))
  corrected = now < at
end
local lowest = 0
if counts_over then lowest = -capacity end
local tokens = math.max(lowest, capacity - full_in * limit / length)
local most = (capacity - lowest) * length / limit
if full_in > most then full_in, corrected = most, true end
local before = math.floor(tokens + 1e-9)
local room, limited = take(before, capacity, lowest, 6)
if room ~= before or limited or corrected then
  local next_full_in = full_in + (before - room) * length / limit
  if limited then next_full_in = (capacity - room) * length / limit end
  if next_full_in > 0 then
    redis.call('SET', KEYS[1], string.format('%.0f %.17g', now, next_full_in), 'PX', string.format('%.0f', math.min(math.ceil(next_full_in / 1000) + jitter * 1000, 9007199254740992)))
  else
    redis.call('DEL', KEYS[1])
  end
end
return {string.format('%.17g', full_in), length}`;

export const limiterScripts: Readonly<Record<LimiterAlgorithm, Script>> = {
  sliding_window: toScript(slidingWindow),
  token_bucket: toScript(tokenBucket),
};

function toScript(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** The parts of a command before and after the key, which are the same for all hits of a limit in one window. */
interface ScriptText {
  readonly head: string;
  readonly tail: string;
  readonly argumentCount: number;
}

const scriptTexts = new WeakMap<LimiterWindow, ScriptText>();
/** The text for single hits, the usual case. */
const oneHit = toBulkText('1') + toBulkText('1');

/** The arguments of both scripts before the jitter, in order. */
export function toArguments({
  algorithm,
  limit,
  capacity,
  countsOver,
  windowStart,
  windowSeconds,
  isEven,
}: LimiterWindow): number[] {
  const window =
    algorithm === 'sliding_window'
      ? [windowStart * 1000, windowSeconds * 1000, isEven ? 1 : 0]
      : [windowSeconds * 1_000_000];
  return [limit, capacity, countsOver ? 1 : 0, ...window];
}

/**
 * The command that counts hits on a limiter's counter: `EVALSHA`, with the key, the jitter in seconds and the runs of
 * hits.
 */
export function toLimiterText(
  limiter: LimiterWindow,
  key: string,
  jitter: number,
  runs: readonly number[],
): CommandText {
  let text = scriptTexts.get(limiter);
  if (text === undefined) {
    text = toScriptText(limiter);
    scriptTexts.set(limiter, text);
  }
  const { head, tail, argumentCount } = text;
  const isOneHit = runs.length === 2 && runs[0] === 1 && runs[1] === 1;
  const count = `*${argumentCount + runs.length}\r\n`;
  const hits = isOneHit ? oneHit : runs.map((number) => toBulkText(`${number}`)).join('');
  return count + head + toBulkText(key) + tail + toBulkText(`${jitter}`) + hits;
}

function toScriptText(limiter: LimiterWindow): ScriptText {
  const { sha } = limiterScripts[limiter.algorithm];
  const numbers = toArguments(limiter);
  return {
    head: toBulkText('EVALSHA') + toBulkText(sha) + toBulkText('1'),
    tail: numbers.map((number) => toBulkText(`${number}`)).join(''),
    // The name, the script, the number of keys, the key and the jitter.
    argumentCount: numbers.length + 5,
  };
}
