// Detects that the process has as many open files and connections as the system allows. Node then accepts each new
// connection and closes it at once, without an event.
import { open, readFile } from 'node:fs/promises';
import { type Clock, repeatAfter } from './clock.ts';
import { isOutOfFiles, outOfFilesRemedy } from './errors.ts';

const intervalMs = 1_000;

export interface OpenFilesDeps {
  readonly clock: Clock;
  readonly log: { warning(text: string): void; notice(text: string): void };
  /** Called at each check that finds the limit reached. */
  readonly onExhausted?: () => void;
  /** Rejects when no file can be opened. By default it opens one. */
  readonly tryToOpen?: () => Promise<void>;
}

export interface OpenFilesWatch {
  close(): void;
}

/** Checks once a second. */
export function watchOpenFiles(deps: OpenFilesDeps): OpenFilesWatch {
  const { clock, log, onExhausted, tryToOpen = openSomething } = deps;
  const limit = readLimit();
  let isClosed = false;
  let isExhausted = false;

  async function check(): Promise<void> {
    const failure = await tryToOpen().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (isClosed) return;
    const wasExhausted = isExhausted;
    isExhausted = isOutOfFiles(failure);
    if (isExhausted) {
      onExhausted?.();
      if (!wasExhausted) {
        log.warning(
          `no more files and connections can be opened (limit: ${await limit}): new connections are closed unanswered; ${outOfFilesRemedy}`,
        );
      }
    } else if (wasExhausted) log.notice('files and connections can be opened again');
  }

  const cancel = repeatAfter(clock, intervalMs, check);
  return {
    close() {
      isClosed = true;
      cancel();
    },
  };
}

async function openSomething(): Promise<void> {
  const handle = await open('/dev/null');
  await handle.close();
}

/** Read at the start: reading it later would need a file. */
async function readLimit(): Promise<string> {
  const text = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  return /^Max open files\s+(\S+)/m.exec(text)?.[1] ?? 'unknown';
}
