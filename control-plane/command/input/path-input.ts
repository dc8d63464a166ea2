// Reads rules from files and directories. Named files are read whatever their names; below directories the worker's
// selection applies (behaviour: files-of-rules).
import { stat } from 'node:fs/promises';
import { join, normalize, resolve, sep } from 'node:path';
import { isError, type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import {
  type ListedFile,
  leadsOut,
  linkOut,
  listRulesFiles,
  readRulesFiles,
  unreadable,
} from '../../../shared/rules-directory.ts';
import { defaultBounds, findTooMuchText } from '../../../shared/rules-file.ts';
import { policyFile } from '../../authoring/policy/policy-file.ts';
import { nodeGroupsFile } from '../../server/snapshot/node-groups.ts';
import type { RuleInputResult } from './rule-texts.ts';

/** Fails when a path cannot be read; unreadable files below a directory are problems instead. */
export async function readPathInput(paths: readonly string[]): Promise<RuleInputResult> {
  const listed = new Map<string, Pick<ListedFile, 'path'>>();
  /** Problems by file and message: a directory can be named twice, or together with its parent. */
  const noticed = new Map<string, Problem>();
  let nodeGroupsPath: string | undefined;
  let policyPath: string | undefined;
  for (const given of paths) {
    const path = given === '' ? given : normalize(given);
    const found = await stat(path).catch((error: unknown) => unreadable(error));
    if (typeof found === 'string') return { ok: false, message: `'${given}' ${found}` };
    if (found.isDirectory()) {
      nodeGroupsPath ??= join(path, nodeGroupsFile);
      policyPath ??= join(path, policyFile);
      const listing = await listDirectory(path);
      for (const problem of listing.problems) {
        noticed.set(`${resolve(problem.file)}\0${problem.message}`, problem);
      }
      for (const file of listing.files) addOnce(file.path);
    } else if (found.isFile()) {
      // A shell also lists files that others have put into a directory.
      if (await leadsOut(path)) noticed.set(resolve(path), linkOut(path));
      else addOnce(path);
    } else {
      return { ok: false, message: `'${given}' is neither a file nor a directory` };
    }
  }

  function addOnce(path: string): void {
    const identity = resolve(path);
    if (!listed.has(identity)) listed.set(identity, { path });
  }

  const { files, problems } = await readRulesFiles([...listed.values()], defaultBounds);
  // A worker that reads files itself accepts more.
  const tooMuch = findTooMuchText(files, 'warning');
  const all = [...noticed.values(), ...problems, ...(tooMuch ? [tooMuch] : [])];
  return {
    ok: true,
    input: { files, problems: all, nodeGroupsPath, policyPath, commit: undefined },
  };
}

async function listDirectory(
  directory: string,
): Promise<{ files: readonly ListedFile[]; problems: readonly Problem[] }> {
  const listing = await listRulesFiles({
    directory,
    beside: undefined,
    ignoreDotFiles: false,
    staysInside: true,
    bounds: defaultBounds,
  });
  // The path may be the root of a working tree.
  const isForeign = (path: string) => path.split(sep).includes('.git');
  const files = listing.files.filter(({ path }) => !isForeign(path));
  const problems = listing.problems.filter(({ file }) => !isForeign(file));
  if (files.length === 0 && !problems.some(isError)) {
    problems.push(problemOf('error', 'no-rules-file', directory, 'no file named *.yaml or *.yml'));
  }
  return { files, problems };
}
