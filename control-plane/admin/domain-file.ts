// Which file a domain is in, and the tag by which a client tells one text of it from another.
import { createHash } from 'node:crypto';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { nodeGroupsFile } from '../snapshot/node-groups-file.ts';
import type { Revision, StoredFile } from '../store/revision.ts';

/** The files of a domain in the order of their paths, several only where domains are merged. A file
 * that is broken has the domain that it had when it was in force, or that its name says. */
export function findDomainFiles(
  revision: Pick<Revision, 'files'>,
  documents: readonly RuleDocument[],
  documentsInForce: readonly RuleDocument[],
  domain: string,
): readonly StoredFile[] {
  const domainOf = new Map(documents.map((document) => [document.file, document.domain]));
  const wasDomainOf = new Map(documentsInForce.map(({ file, domain }) => [file, domain]));
  return revision.files.filter(({ path }) => {
    const known = domainOf.get(path) ?? wasDomainOf.get(path);
    return known === undefined ? path === toFileName(domain) : known === domain;
  });
}

/** Every domain that a file has, or had when it was in force, by name. */
export function listDomainFiles(
  revision: Pick<Revision, 'files'>,
  documents: readonly RuleDocument[],
  documentsInForce: readonly RuleDocument[],
): ReadonlyMap<string, readonly StoredFile[]> {
  const domainOf = new Map(
    [...documentsInForce, ...documents].map(({ file, domain }) => [file, domain]),
  );
  const byDomain = new Map<string, StoredFile[]>();
  for (const file of revision.files) {
    const domain = domainOf.get(file.path);
    if (domain !== undefined) byDomain.set(domain, [...(byDomain.get(domain) ?? []), file]);
  }
  return new Map([...byDomain].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Where a new domain goes: no two domains share a name of a file, also where case does not count. */
export function toFileName(domain: string): string {
  if (/^[a-z0-9][a-z0-9_-]{0,99}$/.test(domain) && `${domain}.yaml` !== nodeGroupsFile) {
    return `${domain}.yaml`;
  }
  const readable = domain
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 50);
  return `${readable || 'domain'}-${toDigest(domain).slice(0, 12)}.yaml`;
}

/** A strong entity tag, with its quotes. */
export function toTag(files: readonly StoredFile[]): string {
  return `"${toDigest(JSON.stringify(files.map(({ path, text }) => [path, text]))).slice(0, 32)}"`;
}

/** Whether a field If-Match or If-None-Match names this tag; weak tags never match (RFC 9110). */
export function namesTag(field: string, tag: string): boolean {
  return field.trim() === '*' || field.split(',').some((item) => item.trim() === tag);
}

function toDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
