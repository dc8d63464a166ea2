// The limits of rules files, wherever they are kept: names, sizes, encoding and number, with the messages
// for those that are not read.

import { isAscii } from 'node:buffer';
import { type Problem, problemOf } from './rules/problem/problem.ts';
import { createPositions } from './rules/problem/reporter.ts';

/** One rules file as it was read; `path` is its name in messages. */
export interface RulesFile {
  readonly path: string;
  readonly text: string;
}

/** Limits of a directory of rules: far above real use, to detect a mistaken mount. */
export interface Bounds {
  readonly fileBytes: number;
  readonly totalBytes: number;
  readonly files: number;
  readonly entries: number;
  readonly depth: number;
}

export const defaultBounds: Bounds = {
  fileBytes: 8 * 1024 * 1024,
  totalBytes: 64 * 1024 * 1024,
  files: 10_000,
  entries: 100_000,
  depth: 16,
};

/** The bounds of a control plane, which examines all files in a thread with bounded memory. */
export const controlPlaneBounds: Bounds = { ...defaultBounds, totalBytes: 16 * 1024 * 1024 };

export function isRulesPath(path: string): boolean {
  return path.endsWith('.yaml') || path.endsWith('.yml');
}

/** In a store, files and folders whose names begin with a dot belong to tools and are skipped. */
export function isHidden(path: string): boolean {
  return path.split('/').some((part) => part.startsWith('.'));
}

export function notRules(path: string): Problem {
  const message = 'only files named *.yaml and *.yml are read; it is ignored';
  const hint = 'rename it if it holds rules, else move it elsewhere';
  return problemOf('warning', 'ignored-file', path, message, hint);
}

export function tooDeep(path: string, { depth }: Bounds): Problem {
  return problemOf('error', 'too-large', path, `directories are nested deeper than ${depth}`);
}

/** `sizeBytes` is undefined if only the excess is known. */
export function tooLarge(
  path: string,
  sizeBytes: number | undefined,
  { fileBytes }: Bounds,
): Problem {
  const message =
    sizeBytes === undefined
      ? `more than the ${fileBytes} bytes that a file may have`
      : `${sizeBytes} bytes, more than the ${fileBytes} that a file may have`;
  return problemOf('error', 'too-large', path, message);
}

const tidy = 'keep nothing but rules files in this directory';

/** Problems of all files together, at most one for each bound; `path` is the directory. */
export function findExcess(
  path: string,
  counts: Readonly<Record<'entries' | 'files', number>>,
  sizes: readonly { readonly sizeBytes: number }[],
  bounds: Bounds,
): Problem[] {
  const totalBytes = sizes.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return (
    [
      [counts.entries, bounds.entries, 'entries'],
      [counts.files, bounds.files, 'files'],
      [totalBytes, bounds.totalBytes, 'bytes in all'],
    ] as const
  ).flatMap(([count, most, what]) => {
    const message = `more than ${most} ${what}; nothing is read`;
    return count <= most ? [] : problemOf('error', 'too-large', path, message, tidy);
  });
}

const mostOfEach = 40;

/**
 * The first 40 errors and warnings of a listing, and one problem for the rest of each: a repository may have 100,000
 * files without rules. `path` is the directory.
 */
export function toFirstProblems(path: string, problems: readonly Problem[]): Problem[] {
  const counts = { error: 0, warning: 0, note: 0 };
  const first = problems.filter(({ severity }) => ++counts[severity] <= mostOfEach);
  const kinds = [
    ['error', 'unreadable-file'],
    ['warning', 'ignored-file'],
  ] as const;
  const others = kinds.flatMap(([severity, rule]) => {
    const message = `${counts[severity] - mostOfEach} more ${severity}s like those before`;
    return counts[severity] <= mostOfEach ? [] : problemOf(severity, rule, path, message, tidy);
  });
  return [...first, ...others];
}

/** The problem of more text than a control plane serves. */
export function findTooMuchText(
  files: readonly Pick<RulesFile, 'text'>[],
  severity: Problem['severity'],
): Problem | undefined {
  const characters = files.reduce((sum, { text }) => sum + text.length, 0);
  const { totalBytes } = controlPlaneBounds;
  if (characters <= totalBytes) return undefined;
  const message = `${characters} characters in all, more than the ${totalBytes} that a control plane examines`;
  return problemOf(severity, 'too-large', '(all files)', message);
}

/** The text of a file's bytes, or the problem with them. */
export function decodeRulesText(path: string, bytes: Buffer): string | Problem {
  const stand = standIns.find(([start]) => bytes.subarray(0, start.length).equals(start));
  if (stand !== undefined) {
    const [, what, hint] = stand;
    return problemOf('error', 'unreadable-file', path, `it is ${what}, not the file itself`, hint);
  }
  // Three times as fast as the decoder.
  if (isAscii(bytes)) return bytes.toString('latin1');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return notUtf8(path, bytes);
  }
}

/** What Git stores in place of a file whose content is elsewhere: how it begins, what it is, and the remedy. */
const standIns = [
  [
    Buffer.from('version https://git-lfs.github.com/spec/'),
    'a pointer of Git LFS',
    "keep rules out of LFS: 'git lfs untrack', and add the file again",
  ],
  [Buffer.from('/annex/objects/'), 'a pointer of git-annex', "'git annex unannex' the file"],
  [Buffer.from('\0GITCRYPT\0'), 'encrypted by git-crypt', 'keep rules out of its filter'],
] as const;

/** The problem's position is that of the first byte that cannot be decoded. */
function notUtf8(path: string, bytes: Buffer): Problem {
  const text = bytes.toString();
  const position = createPositions(text)(text.indexOf('\ufffd'));
  const message = 'the file is not UTF-8 text';
  return { ...problemOf('error', 'text-encoding', path, message, 'save it as UTF-8'), ...position };
}
