// Lets one installation at a time touch node_modules: a file that its holder touches every second.
// A file that was not touched for a while belongs to a process that is gone, whatever its machine
// or container, and is taken over: its time shows it, or, as clocks are set back, that it did not change
// while another installer waited for it.
import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';

const staleAfterMs = 10_000;
const pollMs = 200;
/** Long enough that of two processes which found the same stale file each sees who came last. */
const settleMs = 300;

/**
 * @param {string} path the lock file
 * @param {number} timeoutMs
 * @returns {Promise<{ takenOver: boolean, touch(): void, release(): void } | undefined>} undefined
 *   after `timeoutMs`; `takenOver` when the holder before did not end properly
 */
export async function takeInstallLock(path, timeoutMs) {
  const token = randomUUID();
  const isStale = createStaleness(path);
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    const created = tryCreate(path, token);
    if (created || (await tryTakeOver(path, token, isStale))) {
      return {
        takenOver: !created,
        touch: () => {
          if (holds(path, token)) {
            const now = new Date();
            utimesSync(path, now, now);
          }
        },
        release: () => {
          if (holds(path, token)) {
            rmSync(path, { force: true });
          }
        },
      };
    }
    await sleep(pollMs);
  }
  return undefined;
}

function tryCreate(path, token) {
  try {
    writeFileSync(path, token, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') {
      return false;
    }
    throw error;
  }
}

/** @param {string} path the lock file */
function createStaleness(path) {
  let seen = { mtimeMs: Number.NaN, sinceMs: 0 };
  return () => {
    const { mtimeMs } = statSync(path);
    const nowMs = performance.now();
    if (mtimeMs !== seen.mtimeMs) {
      seen = { mtimeMs, sinceMs: nowMs };
    }
    return Date.now() - mtimeMs >= staleAfterMs || nowMs - seen.sinceMs >= staleAfterMs;
  };
}

async function tryTakeOver(path, token, isStale) {
  const own = `${path}.${token}`;
  try {
    if (!isStale()) {
      return false;
    }
    writeFileSync(own, token);
    renameSync(own, path);
  } catch (error) {
    rmSync(own, { force: true });
    if (error.code === 'ENOENT') {
      return false; // released just now: the next round creates it
    }
    throw error;
  }
  await sleep(settleMs);
  return holds(path, token);
}

function holds(path, token) {
  try {
    return readFileSync(path, 'utf8') === token;
  } catch {
    return false;
  }
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
