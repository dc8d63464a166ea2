// A clock that tests turn by hand. Wall and monotonic time go forward together; the wall can also be
// set apart.
import type { Clock } from '../../shared/clock.ts';

export interface ManualClock extends Clock {
  /** Moves time on by `ms`, running what comes due in order, each at its own time. */
  advance(ms: number): void;
  /** Moves time on as when the process stood still: what came due runs at the end. */
  stall(ms: number): void;
  /** Sets the wall time alone, as when a host's clock is corrected. */
  setWall(ms: number): void;
  /** How many tasks wait for their time. */
  readonly pending: number;
}

interface Task {
  readonly dueMs: number;
  readonly run: () => void;
}

export function createManualClock(wallMs = 1_000_000_000_000): ManualClock {
  let monotonic = 0;
  let wallOffset = wallMs;
  const tasks = new Set<Task>();

  function findDue(untilMs: number): Task | undefined {
    let earliest: Task | undefined;
    for (const task of tasks) {
      if (task.dueMs <= untilMs && (earliest === undefined || task.dueMs < earliest.dueMs)) {
        earliest = task;
      }
    }
    return earliest;
  }

  return {
    wallMs: () => monotonic + wallOffset,
    monotonicMs: () => monotonic,
    after(delayMs, run) {
      const task = { dueMs: monotonic + Math.max(0, delayMs), run };
      tasks.add(task);
      return () => {
        tasks.delete(task);
      };
    },
    advance(ms) {
      const untilMs = monotonic + ms;
      for (let task = findDue(untilMs); task !== undefined; task = findDue(untilMs)) {
        tasks.delete(task);
        monotonic = task.dueMs;
        task.run();
      }
      monotonic = untilMs;
    },
    stall(ms) {
      monotonic += ms;
      const due = [...tasks].filter(({ dueMs }) => dueMs <= monotonic);
      for (const task of due.sort((a, b) => a.dueMs - b.dueMs)) if (tasks.delete(task)) task.run();
    },
    setWall(ms) {
      wallOffset = ms - monotonic;
    },
    get pending() {
      return tasks.size;
    },
  };
}
