// Reads and reports one directory as the reference's config check does: without subdirectories, all files whatever
// their names, with a line for each (behaviour: check-of-the-reference).
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import {
  type ListedFile,
  leadsOut,
  linkOut,
  readRulesFiles,
  unreadable,
} from '../../../shared/rules-directory.ts';
import { defaultBounds } from '../../../shared/rules-file.ts';
import type { LoadedRules } from '../input/rule-input.ts';
import type { RuleInput } from '../input/rule-texts.ts';
import { formatHuman } from './human-format.ts';

export interface ConfigDirectory {
  /** The lines that the reference prints while reading. */
  readonly lines: readonly string[];
  readonly input: RuleInput;
}

/** Never rejects: unreadable files are problems. */
export async function readConfigDirectory(directory: string): Promise<ConfigDirectory> {
  const lines = ['checking rate limit configs...', `loading config directory: ${directory}`];
  const problems: Problem[] = [];
  const listed: Pick<ListedFile, 'path'>[] = [];
  let names: string[] = [];
  try {
    names = await readdir(directory);
  } catch (error) {
    problems.push(problemOf('error', 'unreadable-file', directory, unreadable(error)));
  }
  if (names.length > defaultBounds.files) {
    const message = `more than ${defaultBounds.files} files; nothing is read`;
    problems.push(problemOf('error', 'too-large', directory, message));
    names = [];
  }
  for (const name of names.sort()) {
    // Folders of a mounted ConfigMap; its files are also linked next to them (behaviour: files-of-rules).
    if (name.startsWith('..')) continue;
    const path = join(directory, name);
    lines.push(`opening config file: ${path}`);
    const found = await stat(path).catch((error: unknown) => unreadable(error));
    if (typeof found === 'string')
      problems.push(problemOf('error', 'unreadable-file', path, found));
    else if (await leadsOut(path, directory)) problems.push(linkOut(path));
    else if (found.isFile()) listed.push({ path });
    else {
      const [message, hint] = found.isDirectory()
        ? ['it is a directory', '-config_dir does not read subdirectories; check PATH does']
        : ['it is not a file'];
      problems.push(problemOf('error', 'unreadable-file', path, message, hint));
    }
  }
  const read = await readRulesFiles(listed, defaultBounds);
  return {
    lines,
    input: {
      files: read.files,
      problems: [...problems, ...read.problems],
      nodeGroupsPath: undefined,
      policyPath: undefined,
      commit: undefined,
    },
  };
}

/** The `lines` in reading order, then the problems. */
export function formatAsReference(
  rules: LoadedRules,
  lines: readonly string[],
  withColour: boolean,
): string {
  const hasErrors = rules.ruleSet === undefined;
  const read = lines.map((line) => `${line}\n`).join('');
  const problems = formatHuman(rules, { withColour, withSummary: hasErrors });
  return `${read}${problems}${hasErrors ? '' : 'all rate limit configs ok\n'}`;
}
