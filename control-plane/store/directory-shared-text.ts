// A text that control planes share in the directory of the rules. Each version is a file of its own with the
// next number, made by a hard link: that fails for all but the first, also across machines, and needs no lock
// that a killed process would leave behind.
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, errorText } from '../../shared/errors.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import { stageFile } from './atomic-file.ts';
import { asideSuffix } from './set-aside.ts';
import { maxSharedTextBytes, type SharedText } from './shared-text.ts';

const mode = 0o600;
/** How often a file may vanish between listing and reading it, because a newer one has come. */
const maxAttempts = 5;
const deniedCodes = ['EACCES', 'EPERM', 'EROFS', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV'];

const namePattern = /^(\d{1,15})\.json$/;
const asidePattern = /^(\d{1,15})\.json\.unreadable$/;

/** The files are named `.<name>.<number>.json`; those of older versions are removed. */
export function createDirectorySharedText(directory: string, name: string): SharedText {
  const prefix = `.${name}.`;
  const pathOf = (number: number) => join(directory, `${prefix}${number}.json`);

  async function listNumbers(pattern: RegExp): Promise<number[]> {
    const names = await readdir(directory);
    return names
      .filter((each) => each.startsWith(prefix))
      .flatMap((each) => pattern.exec(each.slice(prefix.length))?.[1] ?? [])
      .map(Number);
  }

  async function findNewest(): Promise<number> {
    return Math.max(0, ...(await listNumbers(namePattern)));
  }

  /** Where another one was written first, it is gone by now or has this number. */
  async function create(number: number, text: string): Promise<boolean> {
    const path = pathOf(number);
    const staged = await stageFile(path, text, mode);
    if (!(await staged.commitNew())) return false;
    const numbers = await listNumbers(namePattern);
    const isNewest = Math.max(...numbers) === number;
    const old = isNewest ? numbers.filter((each) => each < number) : [number];
    for (const each of old) await rm(pathOf(each), { force: true });
    return isNewest;
  }

  function toFailure(error: unknown): AppError {
    return new AppError('store', `${directory}: ${errorText(error)}`, { cause: error });
  }

  return {
    description: pathOf(1).replace('1.json', '*.json'),
    async read() {
      try {
        for (let again = 0; again < maxAttempts; again++) {
          const newest = await findNewest();
          if (newest === 0) return undefined;
          const path = pathOf(newest);
          try {
            const isTooLong = (await stat(path)).size > maxSharedTextBytes;
            const text = isTooLong ? '' : await readFile(path, 'utf8');
            return { version: String(newest), text };
          } catch (error) {
            if (codeOf(error) !== 'ENOENT') throw error;
          }
        }
        throw new Error('the rollout changes too fast to be read');
      } catch (error) {
        throw toFailure(error);
      }
    },
    async swap(before, text) {
      const expected = Number(before ?? 0);
      try {
        if ((await findNewest()) !== expected) return { kind: 'stale' };
        // No number comes twice, also where a text was set aside.
        const number = Math.max(expected, ...(await listNumbers(asidePattern))) + 1;
        const isDone = await create(number, text);
        return isDone ? { kind: 'written', version: String(number) } : { kind: 'stale' };
      } catch (error) {
        if (!deniedCodes.includes(codeOf(error) ?? '')) throw toFailure(error);
        return { kind: 'denied', reason: errorText(error) };
      }
    },
    async setAside(version) {
      const aside = `${pathOf(Number(version))}${asideSuffix}`;
      try {
        await rename(pathOf(Number(version)), aside);
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw toFailure(error);
      }
      return aside;
    },
    close() {},
  };
}
