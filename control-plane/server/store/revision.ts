// The state of a configuration store at one moment: its files, its author, and the lines at the end of its message by
// which the author selects how it is served. control-plane/server/snapshot interprets the files.
import type { Problem } from '../../../shared/rules/problem/problem.ts';

export interface RevisionInfo {
  /** The commit id for Git; a hash of the content for a directory. Equal ids mean equal content. */
  readonly id: string;
  /** Wall time in milliseconds: of the commit, or when a directory was first seen in this state. */
  readonly atMs: number;
  /** `name <email>`, or the part that is known; undefined when unknown. */
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
  /** Files that could not be read or are not configuration; an error makes the revision unusable. */
  readonly problems: readonly Problem[];
}

/** Without the files, for lists and for stored or sent states. */
export function toRevisionInfo({ id, atMs, author, message }: RevisionInfo): RevisionInfo {
  return { id, atMs, author, message };
}

/** The id for messages. */
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

/** The most characters of a message or an author that are kept and shown... */
const maxInfoLength = 4096;
/** ...of which at most this many come from the last paragraph: a squash has a line for each of its authors... */
const maxLastParagraph = 3072;
/** ...or, if that paragraph is longer, this many from its end. */
const maxEndLength = 1024;

/** Authors and messages are untrusted. A long message keeps its last lines: there its author selects how the revision
 * is served. */
export function toInfoText(text: string): string | undefined {
  const trimmed = text.toWellFormed().trim();
  if (trimmed.length <= maxInfoLength) return trimmed === '' ? undefined : trimmed;
  const blank = Math.max(trimmed.lastIndexOf('\n\n'), trimmed.lastIndexOf('\n\r\n'));
  const isRead = blank >= trimmed.length - maxLastParagraph;
  const end = isRead ? trimmed.slice(blank) : trimmed.slice(-maxEndLength);
  const lastLines = end.includes('\n') ? end.slice(end.indexOf('\n')) : '';
  const cut = (lines: string) =>
    `${trimmed.slice(0, maxInfoLength - lines.length - 1)}…${lines}`.toWellFormed();
  const short = cut(lastLines);
  if (isRead || trailersOf(short).length === 0) return short;
  // Cutting must not give effect to text in the middle or beside other text.
  return trailersOf(trimmed).length > 0 ? cut(`\n${lastLines}`) : cut('\n\n…');
}

/** A line in the last paragraph of a commit's or change's message, which travels with the revision. */
export interface Trailer {
  readonly name: string;
  readonly value: string;
}

/** The change may remove most limits. */
export const allowRemovalTrailer: Trailer = { name: 'Allow-Removal', value: 'yes' };
/** Every worker gets the revision at once, whatever rollout is configured. */
export const nowTrailer: Trailer = { name: 'Rollout', value: 'now' };
/** The revision goes through its steps, even if it restores rules that were in force before. */
export const stepsTrailer: Trailer = { name: 'Rollout', value: 'steps' };
/** The revision replaces one whose rollout is running. */
export const supersedeTrailer: Trailer = { name: 'Rollout', value: 'supersede' };
/** Rules that were taken back are rolled out again, in steps. */
export const againTrailer: Trailer = { name: 'Rollout', value: 'again' };

export function hasTrailer(
  { message }: Pick<RevisionInfo, 'message'>,
  { name, value }: Trailer,
): boolean {
  return valuesOf(message, name).some((each) => each.toLowerCase() === value.toLowerCase());
}

/** The non-empty values of the trailers with this name. */
export function valuesOf(message: string | undefined, name: string): string[] {
  return trailersOf(message ?? '')
    .filter((each) => each.name.toLowerCase() === name.toLowerCase() && each.value !== '')
    .map(({ value }) => value);
}

const trailerLine = /^([A-Za-z0-9-]+)[ \t]*:(.*)$/;
/** Git ignores everything after this line. */
const scissors = '# ------------------------ >8 ------------------------';
/** If one of these lines is present, git recognizes trailers in a last paragraph that also contains other text. */
const knownLine = /^(?:Signed-off-by: |\(cherry picked from commit )/;

/** The trailers that `git interpret-trailers` finds: in the last paragraph, unless it is the first, where each line is
 * a trailer, or where git itself wrote one and at least a quarter of the lines are trailers. Trailers anywhere else,
 * such as in the messages of the commits that a squash merge lists, have no effect. */
function trailersOf(message: string): readonly Trailer[] {
  const all = message.split(/\r?\n/);
  const cut = all.indexOf(scissors);
  // Lines with this beginning are git's own, such as those about a merge's conflicts.
  const given = all.slice(0, cut === -1 ? all.length : cut).filter((line) => !line.startsWith('#'));
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
      // This line continues the previous one.
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

/** Git treats other spaces as text. */
function isBlank(line: string): boolean {
  return /^[ \t\r]*$/.test(line);
}

/** The message with this trailer added. */
export function withTrailer(message: string, trailer: Trailer): string {
  if (hasTrailer({ message }, trailer)) return message;
  const isAfterTrailer = trailersOf(message).length > 0;
  return `${message.trimEnd()}${isAfterTrailer ? '\n' : '\n\n'}${toLine(trailer)}`;
}

export function toLine({ name, value }: Trailer): string {
  return `${name}: ${value}`;
}

/** The order of a revision's files. */
export function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

/** The problem with its file named relative to the repository's root. `folder`: the folder of the rules in the
 * repository, such as `rules/`; '' at the root. A problem that concerns all files names none. */
export function inRepository(problem: Problem, folder: string): Problem {
  const isFile = !problem.file.startsWith('(');
  return isFile ? { ...problem, file: `${folder}${problem.file}` } : problem;
}
