// Which window a moment falls into (behaviour: windows).
import type { Unit } from '../rules/unit.ts';

/** A fixed window: `start` in Unix seconds, `seconds` long. */
export interface Window {
  readonly start: number;
  readonly seconds: number;
}

export interface WindowOptions {
  /** 0 is Sunday, 6 is Saturday. Thursday (4) is the weekday of the Unix epoch. */
  readonly weekResetDay: number;
  /** Months from the first to the last day, UTC, instead of 30 days from the epoch. */
  readonly calendarMonths: boolean;
}

const daySeconds = 86_400;
const epochWeekday = 4;

const fixedSeconds: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: daySeconds,
  week: 7 * daySeconds,
  month: 30 * daySeconds,
  year: 365 * daySeconds,
};

function calendarMonthAt(nowSeconds: number): Window {
  const now = new Date(nowSeconds * 1000);
  const start = Date.UTC(now.getUTCFullYear(), now.getUTCMonth()) / 1000;
  const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) / 1000;
  return { start, seconds: end - start };
}

/**
 * Returns the function that gives the window of a unit at a moment (whole Unix seconds).
 *
 * The same object is returned for as long as the window lasts: nearly every call falls into the
 * window of the call before it.
 */
export function createWindows(options: WindowOptions): (unit: Unit, nowSeconds: number) => Window {
  const weekOffset = ((options.weekResetDay - epochWeekday + 7) % 7) * daySeconds;
  const latest = new Map<Unit, Window>();

  const windowAt = (unit: Unit, nowSeconds: number): Window => {
    if (unit === 'month' && options.calendarMonths) return calendarMonthAt(nowSeconds);
    const seconds = fixedSeconds[unit];
    const offset = unit === 'week' ? weekOffset : 0;
    return { start: Math.floor((nowSeconds - offset) / seconds) * seconds + offset, seconds };
  };

  return (unit, nowSeconds) => {
    const known = latest.get(unit);
    if (known && nowSeconds >= known.start && nowSeconds < known.start + known.seconds) {
      return known;
    }
    const window = windowAt(unit, nowSeconds);
    latest.set(unit, window);
    return window;
  };
}
