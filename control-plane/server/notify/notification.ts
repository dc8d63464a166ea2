// Creates the notification of a revision: its outcome, its author and its problems.
import { randomUUID } from 'node:crypto';
import { runInSlices } from '../../../shared/in-slices.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { toReplacement } from '../admin/change.ts';
import type { Examine } from '../admin/examination.ts';
import { type ProblemJson, toProblemJson } from '../admin/problem-json.ts';
import { toTime } from '../api-shape.ts';
import type { OutcomeOnRecord, Outcomes } from '../record/outcomes.ts';
import { comparingGroups } from '../snapshot/node-change.ts';
import { inRepository, type Revision, toShortId } from '../store/revision.ts';
import type { ConfigStore } from '../store/store.ts';

export interface Notification {
  /** Identifies the delivery; equal for all its attempts. */
  readonly delivery: string;
  readonly event: 'in-force' | 'taken-back' | 'held-back' | 'invalid';
  readonly at: string;
  readonly revision: {
    readonly id: string;
    readonly author: { readonly name: string; readonly email: string | null } | null;
    readonly message: string | null;
  };
  /** Domains whose files differ from those in force before, or that are now served to other nodes; at most 100. */
  readonly domains: readonly string[];
  /** Includes the figures behind the decision; null when no reason is known. */
  readonly reason: string | null;
  /** The user who decided; null for a control plane. */
  readonly by: string | null;
  /** The first 20 errors. */
  readonly problems: readonly ProblemJson[];
  /** The total number of errors. */
  readonly errors: number;
  /** The console's page about the revision; null where the console's address is unknown. */
  readonly link: string | null;
}

export interface NotificationDeps {
  readonly store: Pick<ConfigStore, 'readRevision'>;
  readonly examine: Examine;
  /** The folder of the rules in their repository, such as `rules/`; '' for its root. */
  readonly repositoryFolder: string;
  /** Without a trailing slash. */
  readonly publicUrl: string | undefined;
}

const maxDomains = 100;
const maxProblems = 20;

const events = {
  in_force: 'in-force',
  taken_back: 'taken-back',
  held_back: 'held-back',
  invalid: 'invalid',
} as const satisfies Record<OutcomeOnRecord['kind'], Notification['event']>;

/** The notification of the newest outcome. Rejects when the store cannot be read. */
export async function toNotification(
  { store, examine, repositoryFolder, publicUrl }: NotificationDeps,
  [outcome, ...earlier]: Outcomes,
): Promise<Notification | undefined> {
  const id = outcome?.revisions[0];
  if (outcome === undefined || id === undefined) return undefined;
  const beforeId = earlier.find(({ kind }) => kind === 'in_force')?.revisions[0];
  const revision = await store.readRevision(id);
  const before = beforeId === undefined ? undefined : await store.readRevision(beforeId);
  const errors = revision === undefined ? [] : (await examine(revision)).problems.filter(isError);
  const { kind, atMs, reason, by } = outcome;
  return {
    delivery: randomUUID(),
    event: events[kind],
    at: toTime(atMs),
    revision: {
      id,
      author: toAuthor(revision?.author),
      message: revision?.message ?? null,
    },
    domains: revision === undefined ? [] : await toDomains(revision, before, examine),
    reason: reason || null,
    by: by || null,
    problems: errors
      .slice(0, maxProblems)
      .map((error) => toProblemJson(inRepository(error, repositoryFolder))),
    errors: errors.length,
    link: publicUrl === undefined ? null : `${publicUrl}/console/#/revisions?open=${toShortId(id)}`,
  };
}

async function toDomains(
  after: Revision,
  before: Revision | undefined,
  examine: Examine,
): Promise<string[]> {
  const { put, delete: gone } = toReplacement(before ?? { files: [], problems: [] }, after.files);
  const changed = new Set([...put.map(({ path }) => path), ...gone]);
  const examined = await Promise.all([after, before].map((each) => each && examine(each)));
  const [is, was] = examined.map((each) => each?.governed);
  const byGroups = is && was ? await runInSlices(comparingGroups(was, is)) : [];
  const documents = examined.flatMap((each) => each?.documents ?? []);
  const byFiles = documents.filter(({ file }) => changed.has(file));
  return [...new Set([...byFiles, ...byGroups].map(({ domain }) => domain))]
    .sort()
    .slice(0, maxDomains);
}

/** Parses `name <email>`, or a name alone. */
function toAuthor(text: string | undefined): Notification['revision']['author'] {
  if (text === undefined) return null;
  const [, name, email] = /^(.*) <([^<>]*)>$/s.exec(text) ?? [];
  return { name: name ?? text, email: email || null };
}
