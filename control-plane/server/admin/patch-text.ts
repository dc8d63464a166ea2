// The change of one file as a patch that `git apply` accepts: one hunk, from the first differing line to the last.
// Pure.

const contextLines = 3;
/** Characters compared or copied per step. */
const atOnce = 64 * 1024;
/** Characters split into lines per step, which takes ten times as long. */
const markedAtOnce = 8 * 1024;

/** '' if nothing changes. `path` is relative to the repository's root. In steps. */
export function* patching(path: string, before: string, after: string): Generator<void, string> {
  if (before === after) return '';
  const start = yield* findFirstDifference(before, after);
  const same = yield* countSameAtEnd(before, after, start);
  const [oldEnd, newEnd] = [before.length - same, after.length - same];
  let from = start;
  for (let lines = 0; lines < contextLines && from > 0; lines++)
    from = startOfLine(before, from - 1);
  let tail = oldEnd;
  for (let lines = 0; lines < contextLines && tail < before.length; lines++) {
    tail = endOfLine(before, tail);
  }
  const head = before.slice(from, start);
  const foot = before.slice(oldEnd, tail);
  const removed = before.slice(start, oldEnd);
  const added = after.slice(start, newEnd);
  const linesBefore = yield* countLines(before.slice(0, from));
  const around = (yield* countLines(head)) + (yield* countLines(foot));
  const toRange = (lines: number) => {
    const count = around + lines;
    return `${count === 0 ? linesBefore : linesBefore + 1},${count}`;
  };
  const ranges = [toRange(yield* countLines(removed)), toRange(yield* countLines(added))];
  const parts = [`--- a/${path}\n+++ b/${path}\n@@ -${ranges[0]} +${ranges[1]} @@\n`];
  yield* addMarked(parts, ' ', head);
  yield* addMarked(parts, '-', removed);
  yield* addMarked(parts, '+', added);
  yield* addMarked(parts, ' ', foot);
  // A text built by concatenation is copied when it is first read, which takes ten times as long.
  return parts.join('');
}

/** The start of the first line that differs. */
function* findFirstDifference(one: string, other: string): Generator<void, number> {
  const end = Math.min(one.length, other.length);
  let at = 0;
  while (at < end && one.slice(at, at + atOnce) === other.slice(at, at + atOnce)) {
    at += atOnce;
    yield;
  }
  while (at < end && one[at] === other[at]) at++;
  // The shorter text may end inside a line of the longer one.
  return startOfLine(one, Math.min(at, end));
}

/** The number of characters in the equal lines at the end, after `start`. */
function* countSameAtEnd(one: string, other: string, start: number): Generator<void, number> {
  const most = Math.min(one.length, other.length) - start;
  const partOf = (text: string, count: number) =>
    text.slice(text.length - count - atOnce, text.length - count);
  let same = 0;
  while (same + atOnce <= most && partOf(one, same) === partOf(other, same)) {
    same += atOnce;
    yield;
  }
  while (same < most && one[one.length - 1 - same] === other[other.length - 1 - same]) same++;
  const isAtLineStart = [one, other].every((text) => isStartOfLine(text, text.length - same));
  return isAtLineStart ? same : one.length - endOfLine(one, one.length - same);
}

function isStartOfLine(text: string, at: number): boolean {
  return at === 0 || text[at - 1] === '\n';
}

/** The start of the line that contains this character; the position itself if a line begins there. */
function startOfLine(text: string, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1;
}

/** The position after the line break. */
function endOfLine(text: string, at: number): number {
  const lineBreak = text.indexOf('\n', at);
  return lineBreak === -1 ? text.length : lineBreak + 1;
}

function* countLines(text: string): Generator<void, number> {
  let count = text === '' || text.endsWith('\n') ? 0 : 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) {
    if (++count % 1_000 === 0) yield;
  }
  return count;
}

/** The lines, each with the mark before it. */
function* addMarked(parts: string[], mark: string, text: string): Generator<void, void> {
  if (text === '') return;
  const isEnded = text.endsWith('\n');
  parts.push(mark);
  for (let at = 0; at < text.length; at += markedAtOnce) {
    const isLast = at + markedAtOnce >= text.length;
    const part = text.slice(at, isLast && isEnded ? -1 : at + markedAtOnce);
    // replaceAll would build its result by concatenation as well.
    parts.push(part.split('\n').join(`\n${mark}`));
    yield;
  }
  parts.push(isEnded ? '\n' : '\n\\ No newline at end of file\n');
}
