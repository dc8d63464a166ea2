// Where a mistake in a module is, for messages at the start: its file from the working directory, and the line of the
// method or class that is named.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** `problem` begins with `<module>:<Class>.<method>`, as all problems of one module do, or holds it. */
export function withPlace(problem: string, file: string): string {
  const [, names = ''] = /:([A-Za-z_]\w*(?:\.\w+)*)/.exec(problem) ?? [];
  const line = findLine(readFileSync(file, 'utf8').split('\n'), names.split('.'));
  return `${relative('', file)}${line === undefined ? '' : `:${line}`}: ${problem}`;
}

/** Of the last name that the source has as it is written for a class or a member, each behind the one before. */
function findLine(lines: readonly string[], names: readonly string[]): number | undefined {
  let found: number | undefined;
  for (const name of names) {
    const isNamed = new RegExp(
      `\\b(?:class|static|readonly|async)\\s+\\*?${name}\\b|^\\s*\\*?${name}\\s*\\(`,
    );
    const at = lines.findIndex((line, index) => index >= (found ?? 0) && isNamed.test(line));
    if (at >= 0) found = at + 1;
  }
  return found;
}
