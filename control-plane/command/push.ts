// `push`: makes the files of a directory the newest revision, through the admin API.
import { relative, sep } from 'node:path';
import { isError } from '../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { listRulesFiles, readRulesFiles } from '../../shared/rules-directory.ts';
import { controlPlaneBounds } from '../../shared/rules-file.ts';
import { addChangeOptions, type ChangeOptions, pushFiles } from './admin/change-command.ts';
import { type AddCommand, exitCodes } from './command-frame.ts';

interface PushOptions extends ChangeOptions {
  readonly dryRun?: boolean;
}

export const addPush: AddCommand = (command, frame) => {
  const { io, finish } = frame;
  command
    .description(
      'Sends all *.yaml and *.yml below a directory to a control plane, and first prints what that changes. They replace all files of its store; rules with errors are refused.',
    )
    .argument('<directory>', 'the directory')
    .option('--dry-run', 'only print what would change, or why it would be refused');
  addChangeOptions(command).action(async (directory: string, options: PushOptions) => {
    const read = await readDirectory(directory);
    if (!read.ok) {
      io.writeError(`${read.message}\n`);
      finish(exitCodes.error);
      return;
    }
    await pushFiles(frame, options, read.files);
  });
};

type DirectoryResult =
  | {
      readonly ok: true;
      readonly files: readonly { readonly path: string; readonly text: string }[];
    }
  | { readonly ok: false; readonly message: string };

async function readDirectory(directory: string): Promise<DirectoryResult> {
  const bounds = controlPlaneBounds;
  const inside = { ignoreDotFiles: true, staysInside: true };
  const options = { directory, beside: undefined, ...inside, bounds };
  const listing = await listRulesFiles(options);
  if (listing.missing) return { ok: false, message: `error: there is no directory ${directory}` };
  const read = await readRulesFiles(listing.files, bounds);
  const problems = [...listing.problems, ...read.problems].filter(isError);
  if (problems.length > 0) return { ok: false, message: formatProblems(problems) };
  if (read.files.length === 0) {
    // A wrong directory would delete everything.
    const message = `error: ${directory} has no *.yaml or *.yml, so nothing is pushed`;
    return { ok: false, message };
  }
  const toPath = (path: string) => relative(directory, path).split(sep).join('/');
  return { ok: true, files: read.files.map(({ path, text }) => ({ path: toPath(path), text })) };
}
