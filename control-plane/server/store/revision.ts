// The state of a configuration store at one moment: its files, who made it, and the lines at the end of its message by
// which its author selects how it is served. control-plane/server/snapshot interprets the files.
import type { Problem } from '../../../shared/rules/problem/problem.ts';

export interface RevisionInfo {
  /** A commit for Git; for a directory a hash of the content. Equal ids are equal content. */
  readonly id: string;
  /** Wall time in milliseconds: of the commit, or when a directory was first seen like this. */
  readonly atMs: number;
  /** `name <email>`, or what is known; undefined when unknown. */
  readonly author: string | undefined;
  readonly message: string | undefined;
}

export interface StoredFile {
  /** Relative to the root of the store (in Git: of its subfolder), with `/` between the parts. */
  readonly path: string;
  readonly text: string;
}

/** Immutable. */
export interface Revision extends RevisionInfo {
  /** The files by path, in the order of UTF-16 code units. */
  readonly files: readonly StoredFile[];
  /** Files that could not be read or are no configuration; an error makes the revision useless. */
  readonly problems: readonly Problem[];
}

/** Without the files, for lists and stored or sent states. */
export function toRevisionInfo({ id, atMs, author, message }: RevisionInfo): RevisionInfo {
  return { id, atMs, author, message };
}

/** The id as texts show it. */
export function toShortId(id: string): string {
  return id.slice(0, 12);
}

/** `1a2b3c4d5e6f ("first line of the message", name)`. */
export function toTitle({ id, author, message }: RevisionInfo): string {
  const line = message?.split('\n')[0]?.slice(0, 72);
  const parts = [line === undefined ? undefined : `"${line}"`, author].filter(
    (part) => part !== undefined,
  );
  return parts.length === 0 ? toShortId(id) : `${toShortId(id)} (${parts.join(', ')})`;
}

/** At most this many characters of a message or an author are kept and shown... */
const maxInfoLength = 4096;
/** ...of which so many are those of the last paragraph: a squash has a line for each of its authors... */
const maxLastParagraph = 3072;
/** ...or, where that is longer, so many are those that it ends with. */
const maxEndLength = 1024;

/** Authors and messages are untrusted. A long message keeps the lines that it ends with: there its author
 * selects how the revision is served. */
export function toInfoText(text: string): string | undefined {
  const trimmed = text.toWellFormed().trim();
  if (trimmed.length <= maxInfoLength) return trimmed === '' ? undefined : trimmed;
  const blank = Math.max(trimmed.lastIndexOf('\n\n'), trimmed.lastIndexOf('\n\r\n'));
  const isKept = blank >= trimmed.length - maxLastParagraph;
  const end = isKept ? trimmed.slice(blank) : trimmed.slice(-maxEndLength);
  const lastLines = end.includes('\n') ? end.slice(end.indexOf('\n')) : '';
  return `${trimmed.slice(0, maxInfoLength - lastLines.length - 1)}…${lastLines}`.toWellFormed();
}

/** A line of the last paragraph of a commit's message, or of a change's: it travels with the revision. */
export interface Trailer {
  readonly name: string;
  readonly value: string;
}

/** The change may remove most limits. */
export const allowRemovalTrailer: Trailer = { name: 'Allow-Removal', value: 'yes' };
/** Every worker gets the revision at once, whatever rollout is configured. */
export const nowTrailer: Trailer = { name: 'Rollout', value: 'now' };
/** It goes through its steps, also when it goes back to rules that were in force before. */
export const stepsTrailer: Trailer = { name: 'Rollout', value: 'steps' };
/** The revision replaces one with a running rollout. */
export const supersedeTrailer: Trailer = { name: 'Rollout', value: 'supersede' };
/** Rules that were taken back are tried again, in steps. */
export const againTrailer: Trailer = { name: 'Rollout', value: 'again' };

export function saysTrailer(
  { message }: Pick<RevisionInfo, 'message'>,
  { name, value }: Trailer,
): boolean {
  return valuesOf(message, name).some((each) => each.toLowerCase() === value.toLowerCase());
}

/** The values of the trailers of this name, none of them empty. */
export function valuesOf(message: string | undefined, name: string): string[] {
  return trailersOf(message ?? '')
    .filter((each) => each.name.toLowerCase() === name.toLowerCase() && each.value !== '')
    .map(({ value }) => value);
}

const trailerLine = /^([A-Za-z0-9-]+)[ \t]*:(.*)$/;
/** By these lines git knows a last paragraph as trailers although there is other text in it. */
const knownLine = /^(?:Signed-off-by: |\(cherry picked from commit )/;

/** As `git interpret-trailers` finds them: in the last paragraph, which is not the first, where each line is one, or where
 * git itself has written one and a quarter of the lines are. What stands anywhere else, such as the messages of the
 * commits that a squash merge lists, has no effect. */
function trailersOf(message: string): readonly Trailer[] {
  // Lines that begin so are git's own, such as those of a merge's conflicts.
  const given = message.split(/\r?\n/).filter((line) => !line.startsWith('#'));
  const lines = given.slice(0, given.findLastIndex((line) => !isBlank(line)) + 1);
  const blank = lines.findLastIndex(isBlank);
  if (blank === -1) return [];
  const found: { name: string; value: string }[] = [];
  let others = 0;
  let isTrailer = false;
  for (const line of lines.slice(blank + 1)) {
    const [, name, value = ''] = trailerLine.exec(line) ?? [];
    const last = found.at(-1);
    if (/^[ \t]/.test(line)) {
      // It continues the line before.
      if (isTrailer && last !== undefined) last.value = `${last.value} ${line.trim()}`.trim();
      else others++;
    } else if (name !== undefined) {
      found.push({ name, value: value.trim() });
      isTrailer = true;
    } else {
      isTrailer = false;
      if (!knownLine.test(line)) others++;
    }
  }
  const isKnown = lines.slice(blank + 1).some((line) => knownLine.test(line));
  return others === 0 || (isKnown && found.length * 3 >= others) ? found : [];
}

/** Other spaces are text for git. */
function isBlank(line: string): boolean {
  return /^[ \t\r\f\v]*$/.test(line);
}

/** The message with that line. */
export function withTrailer(message: string, trailer: Trailer): string {
  if (saysTrailer({ message }, trailer)) return message;
  const isAfterTrailer = trailersOf(message).length > 0;
  return `${message.trimEnd()}${isAfterTrailer ? '\n' : '\n\n'}${toLine(trailer)}`;
}

export function toLine({ name, value }: Trailer): string {
  return `${name}: ${value}`;
}

/** The order in which a revision has its files. */
export function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

/**
 * A problem with the file's name in the repository that the rules are a folder of. `folder`: in which the files are, such
 * as `rules/`; '' at the root. A problem of all files names none.
 */
export function inRepository(problem: Problem, folder: string): Problem {
  const isFile = !problem.file.startsWith('(');
  return isFile ? { ...problem, file: `${folder}${problem.file}` } : problem;
}
