// Finds marks in the source of a test that TAP does not show: `failing` tests appear passed, and `only` hides others.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `root` is the project's folder; `paths` are below it. Returns each mark with its position. */
export function findMarkedTests(root: string, paths: readonly string[]): string[] {
  return paths.flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index) => {
        const mark = /^\s*test(?:\.\w+)*\.(failing|only)\(/.exec(line)?.[1];
        return mark === undefined ? [] : [`${path}:${index + 1} (${mark})`];
      }),
  );
}
