// A clock that tests advance by hand. Wall and monotonic time advance together; the wall time can also be set
// separately.
import type { Clock } from '../../shared/clock.ts';

export interface ManualClock extends Clock {
  /** Advances time by `ms`, and runs tasks that become due in order, each at its own time. */
  advance(ms: number): void;
  /** Advances time as if the process had stalled: tasks that became due run at the end. */
  stall(ms: number): void;
  /** Sets only the wall time, as when a host's clock is corrected. */
  setWall(ms: number): void;
  /** The number of waiting tasks. */
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
      if (task.dueMs <= untilMs && (earliest === undefined || task.dueMs < earliest.dueMs))
        earliest = task;
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
