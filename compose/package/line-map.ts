// Reduces a source map to what a stack trace needs: the file and the line. A complete map would be as large as the
// programs.

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

export interface SourceMapJson {
  readonly version: 3;
  readonly sources: readonly string[];
  readonly names: readonly string[];
  readonly mappings: string;
}

/** One segment whenever the source line changes; none for code from packages. */
export function toLineMap({ sources, mappings }: SourceMapJson): SourceMapJson {
  const [inSource, outSource] = [createDelta(), createDelta()];
  const [inLine, outLine] = [createDelta(), createDelta()];
  const used: string[] = [];
  const lines = mappings.split(';').map((line) => {
    const [inColumn, outColumn] = [createDelta(), createDelta()];
    const segments: string[] = [];
    let last = '';
    for (const segment of line.split(',').filter((each) => each !== '')) {
      const [column = 0, source = 0, sourceLine = 0] = decode(segment);
      const [at, file, to] = [inColumn.add(column), inSource.add(source), inLine.add(sourceLine)];
      const path = sources[file] ?? '';
      const isOwn = !path.includes('node_modules/');
      const position = isOwn ? `${file}:${to}` : '';
      if (position === last) continue;
      last = position;
      const column_ = outColumn.to(at);
      if (!isOwn) {
        segments.push(encode([column_]));
        continue;
      }
      if (!used.includes(path)) used.push(path);
      segments.push(encode([column_, outSource.to(used.indexOf(path)), outLine.to(to), 0]));
    }
    return segments.join(',');
  });
  return { version: 3, sources: used, names: [], mappings: lines.join(';') };
}

/** Each number in the format is the difference from the previous one of its kind. */
function createDelta() {
  let value = 0;
  return {
    add(difference: number): number {
      value += difference;
      return value;
    },
    to(next: number): number {
      const difference = next - value;
      value = next;
      return difference;
    },
  };
}

/** Base 64 with five bits per digit, the lowest first: the lowest bit is the sign, and bit 32 means that more digits
 * follow. */
function decode(segment: string): number[] {
  const numbers: number[] = [];
  let [value, shift] = [0, 0];
  for (const character of segment) {
    const digit = digits.indexOf(character);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit < 32) {
      numbers.push(value & 1 ? -(value >> 1) : value >> 1);
      [value, shift] = [0, 0];
    }
  }
  return numbers;
}

function encode(numbers: readonly number[]): string {
  let text = '';
  for (const number of numbers) {
    let rest = number < 0 ? (-number << 1) | 1 : number << 1;
    do {
      const digit = rest & 31;
      rest >>>= 5;
      text += digits[rest > 0 ? digit | 32 : digit];
    } while (rest > 0);
  }
  return text;
}
