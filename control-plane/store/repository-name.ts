// The names of files for whoever reads the repository that the rules are a folder of.
import type { Problem } from '../../shared/rules/problem/problem.ts';

/** `folder`: in which the files are, such as `rules/`; '' at the root. A problem of all files names none. */
export function inRepository(problem: Problem, folder: string): Problem {
  const isFile = !problem.file.startsWith('(');
  return isFile ? { ...problem, file: `${folder}${problem.file}` } : problem;
}
