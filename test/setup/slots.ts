// Runs a limited number of tasks at once; the others wait in the order of arrival.

export function createSlots(count: number) {
  const waiting: (() => void)[] = [];
  let free = count;
  return {
    async acquire() {
      if (free > 0) {
        free -= 1;
        return;
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
    give() {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    },
  };
}
