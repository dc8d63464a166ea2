// Offsets in a text as lines and columns, for what problems show.

export interface Position {
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 code units. */
  readonly column: number;
  /** Undefined for a line too long to carry around. */
  readonly sourceLine: string | undefined;
}

export interface SourceText {
  position(offset: number): Position;
}

/** A line above this length is generated or hostile; a hundred problems must not hold it each. */
const maxSourceLineLength = 16_384;

export function createSourceText(text: string): SourceText {
  let lineStarts: readonly number[] | undefined;
  return {
    position(offset) {
      lineStarts ??= findLineStarts(text);
      const index = lastAtOrBelow(lineStarts, offset);
      const start = lineStarts[index] ?? 0;
      let end = (lineStarts[index + 1] ?? text.length + 1) - 1;
      if (text[end - 1] === '\r') end--;
      return Object.freeze({
        line: index + 1,
        column: offset - start + 1,
        sourceLine: end - start > maxSourceLineLength ? undefined : text.slice(start, end),
      });
    },
  };
}

function findLineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

function lastAtOrBelow(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
