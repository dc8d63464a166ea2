// The change of one file as a patch that `git apply` takes: one hunk, from the first line that differs to the last. Pure.

const contextLines = 3;

/** '' where nothing changes. `path`: from the root of the repository. */
export function toPatch(path: string, before: string, after: string): string {
  if (before === after) return '';
  const [old, now] = [toLines(before), toLines(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (
    end < Math.min(old.length, now.length) - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end++;
  }
  const from = Math.max(0, start - contextLines);
  const tail = Math.max(0, end - contextLines);
  const head = old.slice(from, start).map((line) => ` ${line}`);
  const foot = old.slice(old.length - end, old.length - tail).map((line) => ` ${line}`);
  const removed = old.slice(start, old.length - end).map((line) => `-${line}`);
  const added = now.slice(start, now.length - end).map((line) => `+${line}`);
  const rangeOf = (lines: readonly string[]) => {
    const count = head.length + lines.length + foot.length;
    return `${count === 0 ? from : from + 1},${count}`;
  };
  return [
    `--- a/${path}\n+++ b/${path}\n`,
    `@@ -${rangeOf(removed)} +${rangeOf(added)} @@\n`,
    ...[...head, ...removed, ...added, ...foot].map((line) =>
      line.endsWith('\n') ? line : `${line}\n\\ No newline at end of file\n`,
    ),
  ].join('');
}

/** The lines with their ends. */
function toLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
