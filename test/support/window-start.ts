// The window that a limit counts in now, for tests whose requests must all fall into one.

const seconds = { hour: 3_600, day: 86_400 };

/** Waits where the window ends within `stretchMs`; resolves to its start in seconds. */
export async function startOfWindow(
  unit: keyof typeof seconds,
  stretchMs: number,
): Promise<number> {
  const windowMs = seconds[unit] * 1000;
  const leftMs = windowMs - (Date.now() % windowMs);
  if (leftMs < stretchMs) await new Promise((resolve) => setTimeout(resolve, leftMs + 100));
  return Math.floor(Date.now() / windowMs) * seconds[unit];
}
