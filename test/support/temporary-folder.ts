// A folder for the files of a test.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Owner } from './owner.ts';

/** Removed with its content when the test ends. */
export function createTemporaryFolder(t: Owner): string {
  const folder = mkdtempSync(join(tmpdir(), 'ratelane-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
