// `/sources`: a rule as its author wrote it, and the last change to it.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import { orNull } from '../../api-shape.ts';
import type { RevisionInfo } from '../../store/revision.ts';
import { AdminController } from '../admin-controller.ts';
import {
  revisionJson,
  revisionOutcomeJson,
  toRevisionJson,
  toRevisionOutcomes,
} from '../revision-json.ts';
import {
  findRuleHistory,
  type RuleChangeInHistory,
  type RuleHistorySources,
} from '../rule-history.ts';
import { findingRuleOwners, type RuleOwners } from '../rule-owners.ts';
import { type RuleRow, ruleRowJson, toRow } from '../rule-rows.ts';
import { cuttingRule } from '../rule-source.ts';

const texts = Type.Array(Type.String(), {
  description: 'What changed, such as `5 per minute -> 3 per minute`',
});
const restores = orNull(
  Type.String({
    description: 'The newest older revision that had the rule as it is from this one on: a revert',
  }),
);
const ruleName = Type.String({
  minLength: 1,
  maxLength: 4096,
  description: 'Its name as `GET /rules` has it, or its metric key',
});
const valueText = (what: string) =>
  orNull(Type.String({ description: `${what}; null where there was no such rule` }));

const ruleChangesJson = Type.Object(
  {
    rule: Type.String(),
    changes: Type.Array(
      Type.Object({
        revision: revisionJson,
        outcome: orNull(revisionOutcomeJson),
        /** Null if no older revision is known: this is the oldest known value. */
        before: orNull(revisionJson),
        from: valueText('The value before'),
        to: valueText('The value from then on'),
        texts,
        restores,
      }),
      { description: 'The newest first' },
    ),
    next: orNull(
      Type.String({ description: 'For `before`, where older revisions are not examined yet' }),
    ),
  },
  { title: 'RuleChanges' },
);
export type RuleChangesJson = Type.Static<typeof ruleChangesJson>;
const ruleSourceJson = Type.Object(
  {
    revision: Type.String({ description: 'In force' }),
    domain: Type.String(),
    rule: ruleRowJson,
    yaml: orNull(
      Type.String({ description: 'Its lines of the file; null where they are not known' }),
    ),
    /** Null if no older revision is known in which the rule differed. */
    changed: orNull(
      Type.Object({
        revision: revisionJson,
        before: revisionJson,
        texts,
        /** Null also from an older control plane. */
        restores: Type.Optional(restores),
        isNew: Type.Optional(Type.Boolean({ description: 'There was no such rule before' })),
        later: Type.Integer({ description: 'How many revisions came into force since' }),
      }),
    ),
    trial: orNull(Type.Object({ revision: revisionJson, texts })),
  },
  { title: 'RuleSource' },
);
export type RuleSourceJson = Type.Static<typeof ruleSourceJson>;

/** How far back the change is searched for, in revisions and in time. */
export const mostRevisions = 1_000;
export const mostMs = 1_500;
/** This many changes suffice to show whether the last one restored an earlier state. */
const lastChanges = 4;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'A rule in force as its author wrote it, and which revision changed it last',
    query: Type.Object({
      rule: ruleName,
    }),
    returns: { 200: ruleSourceJson },
    failures: { 503: undefined },
  });

  async GET({ rule: wanted }: Fields<typeof Default.GET>) {
    const { snapshots } = this.api;
    const { inForce, trial } = snapshots.state();
    if (inForce === undefined) throw this.refuse(503, 'no revision is in force yet');
    const found = (await this.findOwners()).find(wanted);
    if (found === undefined) {
      throw new HttpError(404, { detail: `there is no rule ${wanted} in force` });
    }
    const row = toRow(found);
    const domain = row.rule.slice(0, row.rule.length - toPath(row).length - 1);
    const now = await this.fromStore(this.api.store.readRevision(inForce.revision.id));
    const text = now?.files.find(({ path }) => path === row.file)?.text;
    const yaml =
      text === undefined || row.line === null
        ? undefined
        : await runInSlices(cuttingRule(text, row.line));
    const changed = await this.findLastChange(row.rule);
    return {
      revision: inForce.revision.id,
      domain,
      rule: row,
      yaml: yaml ?? null,
      changed,
      trial:
        now === undefined || trial === undefined
          ? null
          : {
              revision: toRevisionJson(trial.revision),
              texts: await this.readTrial(row.rule, trial.revision, inForce.revision),
            },
    };
  }

  static readonly GET_changes = op({
    summary: 'The revisions that changed a rule, the newest first, with its values',
    description:
      'Each revision is compared with the one that was in force before it. An answer examines as many revisions as it has time for.',
    query: Type.Object({
      rule: ruleName,
      before: Type.Optional(
        Type.String({ maxLength: 100, description: '`next` of an earlier answer' }),
      ),
      limit: Type.Integer({ default: 20, minimum: 1, maximum: 100 }),
    }),
    returns: { 200: ruleChangesJson },
    failures: { 503: undefined },
  });

  async GET_changes({ rule: wanted, before, limit }: Fields<typeof Default.GET_changes>) {
    // A rule that no longer exists is found only by its name.
    const rule = (await this.findOwners()).nameOf(wanted);
    const { revisions, outcomes, wasInForce } = await this.readHistory();
    const start =
      before === undefined ? 0 : revisions.findIndex((each) => toCursor(each) === before);
    if (start < 0) {
      throw new HttpError(404, { detail: 'before: the history does not have this revision' });
    }
    const { changes, next } = await findRuleHistory(
      { rule, start, limit },
      this.toHistorySources(revisions, wasInForce),
    );
    const nextRevision = next === undefined ? undefined : revisions[next];
    return {
      rule,
      changes: changes.map((change) => ({
        ...toChangeJson(change),
        outcome: outcomes[revisions.indexOf(change.revision)] ?? null,
      })),
      next: nextRevision === undefined ? null : toCursor(nextRevision),
    };
  }

  private async findOwners(): Promise<RuleOwners> {
    return runInSlices(findingRuleOwners(await this.readDocumentsNow()));
  }

  /** The last change to the rule among the revisions that came into force. */
  private async findLastChange(rule: string) {
    const { snapshots } = this.api;
    const { revisions, wasInForce } = await this.readHistory();
    const all = revisions.filter((_, index) => wasInForce(index));
    const inForce = snapshots.state().inForce?.revision.id;
    const first = all.findIndex(({ id }) => id === inForce);
    const served = all.slice(Math.max(0, first));
    const { changes } = await findRuleHistory(
      { rule, start: 0, limit: lastChanges },
      this.toHistorySources(served, () => true),
    );
    const [last] = changes;
    if (last?.before === undefined) return null;
    return {
      revision: toRevisionJson(last.revision),
      before: toRevisionJson(last.before),
      texts: [...last.texts],
      restores: last.restores ?? null,
      isNew: last.from === undefined,
      later: served.indexOf(last.revision),
    };
  }

  private async readHistory() {
    const { store, snapshots, rollout } = this.api;
    const history = await this.fromStore(store.history(mostRevisions));
    const all = toRevisionOutcomes(history, snapshots.state(), rollout.memory().outcomes);
    // No worker received a revision with errors, and its effect is unknown.
    const isValid = (index: number) => all[index]?.kind !== 'invalid';
    const revisions = history.filter((_, index) => isValid(index));
    const outcomes = all.filter((_, index) => isValid(index));
    const wasInForce = (index: number) => {
      const { kind } = outcomes[index] ?? { kind: 'was_in_force' };
      return kind === 'in_force' || kind === 'was_in_force';
    };
    return { revisions, outcomes, wasInForce };
  }

  private toHistorySources(
    revisions: readonly RevisionInfo[],
    wasInForce: (index: number) => boolean,
  ): RuleHistorySources {
    const { store, reading, clock } = this.api;
    const endMs = clock.monotonicMs() + mostMs;
    return {
      revisions,
      wasInForce,
      readRevision: (id) => this.fromStore(store.readRevision(id)),
      readDocument: reading.readDocument,
      hasTime: () => clock.monotonicMs() < endMs,
    };
  }

  private async readTrial(rule: string, trial: RevisionInfo, inForce: RevisionInfo) {
    const { changes } = await findRuleHistory(
      { rule, start: 0, limit: 1 },
      this.toHistorySources([trial, inForce], () => true),
    );
    const [change] = changes;
    return change?.revision === trial ? [...change.texts] : [];
  }
}

/** A state that returns has the same id as before, but another time. */
function toCursor({ id, atMs }: RevisionInfo): string {
  return `${id}@${atMs}`;
}

function toChangeJson({ revision, before, from, to, texts, restores }: RuleChangeInHistory) {
  return {
    revision: toRevisionJson(revision),
    before: before === undefined ? null : toRevisionJson(before),
    from: from ?? null,
    to: to ?? null,
    texts: [...texts],
    restores: restores ?? null,
  };
}

/** The name without its domain. */
function toPath({ entries }: RuleRow): string {
  return entries.map(({ key, value }) => (value === '' ? key : `${key}_${value}`)).join('.');
}
