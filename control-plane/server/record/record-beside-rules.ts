// The record as earlier versions stored it beside the rules of a directory, in hidden files of which the highest number
// is the newest. It counts if the state directory has state of an earlier version but no record, and is removed once it
// has one: after a downgrade, an earlier version would otherwise continue with what was in force, or on trial, before
// the upgrade.
import { opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readSmallFile } from '../../../shared/small-file.ts';
import { maxSharedTextBytes } from '../store/shared-text.ts';

const pattern = /^\.ratelane-rollout\.(\d{1,15})\.json$/;
/** No directory of rules has this many files. */
const maxEntries = 100_000;

/** Oldest first. Empty for a directory that cannot be read, which its store reports. */
async function listTexts(directory: string): Promise<string[]> {
  const found: { readonly name: string; readonly number: number }[] = [];
  const entries = await opendir(directory).catch(() => []);
  let count = 0;
  for await (const { name } of entries) {
    const [, number] = pattern.exec(name) ?? [];
    if (number !== undefined) found.push({ name, number: Number(number) });
    if (++count === maxEntries) break;
  }
  return found.sort((a, b) => a.number - b.number).map(({ name }) => join(directory, name));
}

/** Undefined if absent. */
export async function readTextBesideRules(
  directory: string,
): Promise<{ readonly path: string; readonly text: string } | undefined> {
  const path = (await listTexts(directory)).at(-1);
  return path === undefined
    ? undefined
    : { path, text: await readSmallFile(path, maxSharedTextBytes) };
}

export async function removeTextsBesideRules(directory: string): Promise<void> {
  for (const path of await listTexts(directory)) await rm(path, { force: true });
}
