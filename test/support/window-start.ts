// The current window of a limit, for tests whose requests must all be in the same window.

const seconds = { hour: 3_600, day: 86_400 };

/** Waits if the window ends within `stretchMs`; resolves to its start in seconds. */
export async function startOfWindow(
  unit: keyof typeof seconds,
  stretchMs: number,
): Promise<number> {
  const windowMs = seconds[unit] * 1000;
  const leftMs = windowMs - (Date.now() % windowMs);
  if (leftMs < stretchMs) await new Promise((resolve) => setTimeout(resolve, leftMs + 100));
  return Math.floor(Date.now() / windowMs) * seconds[unit];
}
