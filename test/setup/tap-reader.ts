// Reads ava's TAP output line by line, and counts. run-tests.ts decides what else counts as a failure of the whole run
// (a crash, a forbidden skip).

export interface TapFailure {
  readonly title: string;
  /** What follows the result line: log lines and the details block, as written. */
  readonly details: readonly string[];
}

export type TapReader = ReturnType<typeof createTapReader>;

/** A title that names its file (each-test.ts) needs no prefix: ava's prefix is the room's first file. */
const resultLine = /^(ok|not ok) \d+ - (?:.* › (?=\S+\.test\.ts: ))?(.*?)(?: # (SKIP|TODO))?$/;

/** Calls `onFailure` once per failed test, when all its details have been read. */
export function createTapReader(onFailure: (failure: TapFailure) => void) {
  let passed = 0;
  let failed = 0;
  let complete = false;
  const skipped: string[] = [];
  let open: { title: string; details: string[] } | undefined;

  const closeFailure = (): void => {
    if (open !== undefined) {
      onFailure({ title: open.title, details: withoutPosition(open.details) });
      open = undefined;
    }
  };

  return {
    /** One line without its line break. */
    readLine(line: string) {
      const result = resultLine.exec(line);
      if (result === null) {
        if (/^1\.\.\d+/.test(line)) {
          closeFailure();
          complete = true;
        }
        open?.details.push(line);
        return;
      }
      closeFailure();
      const [, outcome, title = '', directive] = result;
      if (directive !== undefined) {
        skipped.push(`${title} (${directive.toLowerCase()})`);
      } else if (outcome === 'ok') {
        passed += 1;
      } else {
        failed += 1;
        open = { title, details: [] };
      }
    },
    /** Call when no more lines follow, so that the last failure is complete. */
    end: closeFailure,
    get passed() {
      return passed;
    },
    get failed() {
      return failed;
    },
    /** Titles of tests that did not run, or may fail: `SKIP` and `TODO`. */
    get skipped() {
      return skipped;
    },
    /** False until the plan line, which ava writes at its end. */
    get complete() {
      return complete;
    },
  };
}

/** The position in ava itself is useless: each-test.ts has the line of the test. */
function withoutPosition(details: readonly string[]): string[] {
  const text = details.join('\n').replace(/\n\s+at: >-\n.*\n.*\/node_modules\/ava\/.*$/m, '');
  return text.split('\n');
}
