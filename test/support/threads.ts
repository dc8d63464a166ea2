// Reads Linux's information about the threads of a process, one by one.
import { readdir, readFile } from 'node:fs/promises';
import { codeOf } from '../../shared/rules-directory.ts';

/** The contents of `/proc/<pid>/task/<thread>/<file>`, without those of threads that end meanwhile. */
export async function readThreads(pid: number, file: 'stat' | 'children'): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const contents = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/${file}`, 'utf8').catch(ended)),
  );
  return contents.filter((content) => content !== undefined);
}

/** The file no longer exists, or the thread of the open file has ended. */
function ended(error: unknown): undefined {
  if (!['ENOENT', 'ESRCH'].includes(codeOf(error))) throw error;
}
