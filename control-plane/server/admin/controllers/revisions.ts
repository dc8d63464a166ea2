// `/revisions`: the history of the store, the files of a revision, the changes between two, and a new revision made of
// all files at once.
import Type from 'typebox';
import { type Fields, HttpError, op, optional, part } from '../../../../shared/router/index.ts';
import { orNull } from '../../api-shape.ts';
import type { BuiltSnapshots } from '../../snapshot/build.ts';
import type { Revision } from '../../store/revision.ts';
import { AdminController, allowRemoval, rollout } from '../admin-controller.ts';
import { type ChangeRequest, toFileText, toReplacement } from '../change.ts';
import { findChanges } from '../diff-job.ts';
import { problemJson, refusedRules } from '../problem-json.ts';
import {
  revisionFields,
  revisionJson,
  revisionOutcomeJson,
  toRevisionJson,
  toRevisionOutcomes,
} from '../revision-json.ts';
import { ruleChangeJson } from '../rule-change-json.ts';

const id = part('id', Type.String({ minLength: 1, maxLength: 64, pattern: '^[0-9a-f]+$' }));
const fileJson = Type.Object({ path: Type.String({ maxLength: 1024 }), text: Type.String() });
const listedRevision = Type.Object({
  ...revisionFields,
  inForce: Type.Boolean(),
  newest: Type.Boolean(),
  /** Null if it is no longer known. */
  outcome: orNull(revisionOutcomeJson),
});
export type ListedRevisionJson = Type.Static<typeof listedRevision>;
const fullRevision = Type.Object({
  ...revisionFields,
  valid: Type.Boolean(),
  files: Type.Array(fileJson),
  problems: Type.Array(problemJson),
});
const difference = {
  files: Type.Array(Type.Object({ path: Type.String(), change: Type.String() })),
  changes: Type.Array(ruleChangeJson),
};
const newFiles = {
  files: Type.Array(fileJson, { maxItems: 10_000 }),
  expectedRevision: Type.Optional(
    Type.String({ maxLength: 64, description: 'The revision that the files were made from' }),
  ),
  allowRemoval,
  rollout,
};

const message = Type.Optional(Type.String({ maxLength: 4096 }));

const listQuery = Type.Object({
  limit: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 20,
    description: 'Of a list',
  }),
});

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Read a revision; the beginning of its id is enough',
    path: [optional(id)],
    query: listQuery,
    returns: { 200: fullRevision },
    failures: { 503: undefined },
    shorter: {
      0: {
        summary: 'List revisions, the newest first',
        returns: { 200: Type.Object({ revisions: Type.Array(listedRevision) }) },
      },
    },
  });

  async GET({ limit }: Fields<typeof Default.GET>, wanted?: string) {
    if (wanted !== undefined) {
      return this.sendLong(async () => {
        const revision = await this.findRevision(wanted);
        const { ruleSet, problems } = await this.api.examine(revision);
        return {
          ...toRevisionJson(revision),
          valid: ruleSet !== undefined,
          files: [...revision.files],
          problems: this.toProblems(problems),
        };
      });
    }
    const state = this.api.snapshots.state();
    const { newest, inForce } = state;
    const history = await this.fromStore(this.api.store.history(limit));
    // A state that returns has the same id as before: the later one is meant.
    const latest = (id: string | undefined) => history.findIndex((revision) => revision.id === id);
    const inForceAt = latest(inForce?.revision.id);
    const newestAt = latest(newest?.revision.id);
    const outcomes = toRevisionOutcomes(history, state, this.api.rollout.memory().outcomes);
    return {
      revisions: history.map((info, index) => ({
        ...toRevisionJson(info),
        inForce: index === inForceAt,
        newest: index === newestAt,
        outcome: outcomes[index] ?? null,
      })),
    };
  }

  static readonly GET_diff = op({
    summary: 'What changes for requests from one revision to another',
    query: Type.Object({
      from: Type.String({ minLength: 1, maxLength: 64 }),
      to: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'The newest' })),
    }),
    returns: {
      200: Type.Object({
        from: revisionJson,
        to: revisionJson,
        ...difference,
      }),
    },
    failures: { 409: undefined, 503: undefined },
  });

  async GET_diff({ from, to }: Fields<typeof Default.GET_diff>) {
    return this.sendLong(async () => {
      const before = await this.findRevision(from);
      const after = to === undefined ? await this.readNewest() : await this.findRevision(to);
      const compared = [await this.toCompared(before), await this.toCompared(after)] as const;
      return {
        from: toRevisionJson(before),
        to: toRevisionJson(after),
        files: compareFiles(before, after),
        changes: await this.findChanges(...compared),
      };
    });
  }

  static readonly POST_diff = op({
    summary: 'What a revision of these files would change, or why it would be refused',
    body: Type.Object({ ...newFiles, message }),
    returns: { 200: Type.Object({ from: revisionJson, ...difference }) },
    failures: { 409: undefined, 412: undefined, 422: refusedRules, 503: undefined },
  });

  async POST_diff({ message = '', ...given }: Fields<typeof Default.POST_diff>) {
    return this.sendLong(async () => {
      const planned = await this.plan({ ...(await this.toRequest(given)), message });
      const { before, after, examined } = planned;
      const known = await this.api.examine(before);
      const { governed } = known.governed ? known : this.api.snapshots;
      const changes =
        governed && examined.governed ? await this.findChanges(governed, examined.governed) : [];
      return { from: toRevisionJson(before), files: compareFiles(before, after), changes };
    });
  }

  private findChanges(before: BuiltSnapshots, after: BuiltSnapshots) {
    const { thread, clock } = this.api;
    const { signal } = this.request;
    return findChanges(thread, { before, after }, { nowMs: clock.wallMs(), signal });
  }

  private async toCompared(revision: Revision) {
    const { governed } = await this.api.examine(revision);
    if (governed !== undefined) return governed;
    throw new HttpError(409, { detail: `revision ${revision.id} has errors: it is not compared` });
  }

  static readonly POST = op({
    summary: 'Make a revision of these files; all others are deleted',
    body: Type.Object({ ...newFiles, message }),
    returns: { 200: revisionJson, 201: revisionJson },
    failures: { 409: undefined, 412: undefined, 422: refusedRules, 503: undefined },
  });

  async POST({ message, ...given }: Fields<typeof Default.POST>) {
    const made = await this.change('push a revision', async () => ({
      message,
      ...(await this.toRequest(given)),
    }));
    const isNew = made.after.id !== made.before.id;
    this.response.status = isNew ? 201 : 200;
    if (isNew) this.response.headers.set('location', `/revisions/${made.after.id}`);
    return toRevisionJson(made.after);
  }

  private async toRequest({
    files,
    expectedRevision,
    allowRemoval,
    rollout,
  }: Omit<Fields<typeof Default.POST_diff>, 'message'>): Promise<
    Omit<ChangeRequest, 'author' | 'message'>
  > {
    return {
      expectedRevision: expectedRevision && (await this.expandRevision(expectedRevision)),
      toleratesOldErrors: false,
      allowsRemoval: allowRemoval === true,
      rollout,
      plan: (current) =>
        toReplacement(
          current,
          files.map(({ path, text }) => ({ path, text: toFileText(text) })),
        ),
    };
  }
}

function compareFiles(before: Revision, after: Pick<Revision, 'files'>) {
  const { put, delete: gone } = toReplacement(before, after.files);
  const known = new Set(before.files.map(({ path }) => path));
  return [
    ...put.map(({ path }) => ({ path, change: known.has(path) ? 'changed' : 'added' })),
    ...gone.map((path) => ({ path, change: 'deleted' })),
  ].sort((a, b) => (a.path < b.path ? -1 : 1));
}
