// Finds the file of a domain, and the entity tag of its text.

import { createHash } from 'node:crypto';
import { runInSlices } from '../../../shared/in-slices.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { policyFile } from '../../authoring/policy/policy-file.ts';
import { nodeGroupsFile } from '../snapshot/node-groups.ts';
import { existingPaths } from '../store/file-change.ts';
import { digestingJson } from '../store/json-digest.ts';
import type { Revision, StoredFile } from '../store/revision.ts';

/** The files of a domain in the order of their paths; more than one only if domains are merged. A broken file counts
 * for the domain that it had when it was in force, or otherwise for the domain in its file name. */
export function findDomainFiles(
  revision: Pick<Revision, 'files'>,
  documents: readonly RuleDocument[],
  documentsInForce: readonly RuleDocument[],
  domain: string,
): readonly StoredFile[] {
  const domainOf = toDomainOf(documents, documentsInForce);
  return revision.files.filter(({ path }) => isOfDomain(domain, path, domainOf));
}

/** A file of the domain that could not be read, and why; `.` if no file could. Replacing such a file would lose its
 * rules, and a second file would duplicate them. */
export function findUnreadFile(
  revision: Pick<Revision, 'files' | 'problems'>,
  documentsInForce: readonly RuleDocument[],
  domain: string,
): { readonly path: string; readonly reason: string } | undefined {
  const domainOf = toDomainOf([], documentsInForce);
  const read = new Set(revision.files.map(({ path }) => path));
  const path = [...existingPaths(revision)].find(
    (each) => !read.has(each) && isOfDomain(domain, each, domainOf),
  );
  // If the root has too many files or is unreadable, no file is known.
  const problem = revision.problems.find(
    (each) => isError(each) && (each.file === path || each.file === '.'),
  );
  return problem && { path: problem.file, reason: problem.message };
}

type DomainOf = ReadonlyMap<string, string>;

function toDomainOf(
  documents: readonly RuleDocument[],
  documentsInForce: readonly RuleDocument[],
): DomainOf {
  return new Map([...documentsInForce, ...documents].map(({ file, domain }) => [file, domain]));
}

function isOfDomain(domain: string, path: string, domainOf: DomainOf): boolean {
  const known = domainOf.get(path);
  return known === undefined ? path === toFileName(domain) : known === domain;
}

/** Every domain that a file has, or had when it was in force, by name. */
export function listDomainFiles(
  revision: Pick<Revision, 'files'>,
  documents: readonly RuleDocument[],
  documentsInForce: readonly RuleDocument[],
): ReadonlyMap<string, readonly StoredFile[]> {
  const domainOf = toDomainOf(documents, documentsInForce);
  const byDomain = new Map<string, StoredFile[]>();
  for (const file of revision.files) {
    const domain = domainOf.get(file.path);
    if (domain !== undefined) byDomain.set(domain, [...(byDomain.get(domain) ?? []), file]);
  }
  return new Map([...byDomain].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A path that no file has, readable or not, even on case-insensitive file systems. */
export function freePath(revision: Pick<Revision, 'files' | 'problems'>, wanted: string): string {
  const existing = new Set([...existingPaths(revision)].map((path) => path.toLowerCase()));
  for (let number = 2, path = wanted; ; number++) {
    if (!existing.has(path.toLowerCase())) return path;
    path = wanted.replace(/\.yaml$/, `-${number}.yaml`);
  }
}

/** The file of a new domain: no two domains share a file name, even on case-insensitive file systems. */
export function toFileName(domain: string): string {
  if (
    /^[a-z0-9][a-z0-9_-]{0,99}$/.test(domain) &&
    ![nodeGroupsFile, policyFile].includes(`${domain}.yaml`)
  ) {
    return `${domain}.yaml`;
  }
  const readable = domain
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 50);
  return `${readable || 'domain'}-${toDigest(domain).slice(0, 12)}.yaml`;
}

/** A strong entity tag, with its quotes. */
export function toTag(files: readonly StoredFile[]): Promise<string> {
  return runInSlices(tagging(files));
}

/** Like `toTag`, in steps. */
export function* tagging(files: readonly StoredFile[]): Generator<void, string> {
  const digest = yield* digestingJson([files.map(({ path, text }) => [path, text])]);
  return `"${digest.slice(0, 32)}"`;
}

/** Whether a field If-Match or If-None-Match names this tag; weak tags never match (RFC 9110). */
export function namesTag(field: string, tag: string): boolean {
  return field.trim() === '*' || field.split(',').some((item) => item.trim() === tag);
}

function toDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
