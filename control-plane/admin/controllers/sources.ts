// `/sources`: a rule as its author wrote it, and who changed it last.
import Type from 'typebox';
import { orNull } from '../../../shared/or-null.ts';
import { type Fields, HttpError, op } from '../../../shared/router/index.ts';
import { documentsAt } from '../../../shared/rules/rule-end.ts';
import { AdminController } from '../admin-controller.ts';
import { changesOfRule, findLastChange } from '../last-change.ts';
import { revisionJson, toRevisionJson } from '../revision-json.ts';
import { toRevisionOutcomes } from '../revision-outcome.ts';
import { ruleOwners } from '../rule-owners.ts';
import { type RuleRow, ruleRowJson } from '../rule-rows.ts';
import { cutRule } from '../rule-source.ts';

const texts = Type.Array(Type.String(), { description: 'What changed for its requests' });
const ruleSourceJson = Type.Object(
  {
    revision: Type.String({ description: 'In force' }),
    domain: Type.String(),
    rule: ruleRowJson,
    yaml: orNull(
      Type.String({ description: 'Its lines of the file; null where they are not known' }),
    ),
    /** Null where no older revision is known that had it otherwise. */
    changed: orNull(
      Type.Object({
        revision: revisionJson,
        before: revisionJson,
        texts,
        later: Type.Integer({ description: 'How many revisions came into force since' }),
      }),
    ),
    trial: orNull(Type.Object({ revision: revisionJson, texts })),
  },
  { title: 'RuleSource' },
);
export type RuleSourceJson = Type.Static<typeof ruleSourceJson>;

/** How far back is looked, in revisions and in time. */
export const mostRevisions = 100;
export const mostMs = 2_000;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'A rule in force as its author wrote it, and which revision changed it last',
    query: Type.Object({
      rule: Type.String({
        minLength: 1,
        maxLength: 4096,
        description: 'Its name as `GET /rules` has it, or its metric key',
      }),
    }),
    returns: { 200: ruleSourceJson },
    failures: { 503: undefined },
  });

  async GET({ rule: wanted }: Fields<typeof Default.GET>) {
    const { snapshots, clock } = this.api;
    const { inForce, trial } = snapshots.state();
    if (inForce === undefined) throw this.refuse(503, 'nothing is in force yet');
    const row = ruleOwners(documentsAt(snapshots.documents, clock.wallMs())).find(wanted);
    if (row === undefined) {
      throw new HttpError(404, { detail: `there is no rule ${wanted} in force` });
    }
    const domain = row.rule.slice(0, row.rule.length - toPath(row).length - 1);
    const now = await this.fromStore(this.api.store.readRevision(inForce.revision.id));
    const text = now?.files.find(({ path }) => path === row.file)?.text;
    const yaml = text === undefined || row.line === null ? undefined : cutRule(text, row.line);
    const { change, later } = await this.findChange(domain, row);
    return {
      revision: inForce.revision.id,
      domain,
      rule: row,
      yaml: yaml ?? null,
      changed: change
        ? {
            revision: toRevisionJson(change.revision),
            before: toRevisionJson(change.before),
            texts: [...change.texts],
            later,
          }
        : null,
      trial:
        now === undefined || trial === undefined
          ? null
          : {
              revision: toRevisionJson(trial.revision),
              texts: await this.readTrial(domain, row, now, trial.revision.id),
            },
    };
  }

  private async findChange(domain: string, row: RuleRow) {
    const { store, snapshots, rollout, examine, clock } = this.api;
    const history = await this.fromStore(store.history(mostRevisions));
    const outcomes = toRevisionOutcomes(history, snapshots.state(), rollout.memory().outcomes);
    const served = history.filter((_, index) => {
      const { kind } = outcomes[index] ?? { kind: 'was_in_force' };
      return kind === 'in_force' || kind === 'was_in_force';
    });
    const endMs = clock.monotonicMs() + mostMs;
    return findLastChange(domain, row, {
      served: served.slice(
        Math.max(
          0,
          served.findIndex(({ id }) => id === snapshots.state().inForce?.revision.id),
        ),
      ),
      readRevision: (id) => this.fromStore(store.readRevision(id)),
      examine,
      hasTime: () => clock.monotonicMs() < endMs,
    });
  }

  private async readTrial(
    domain: string,
    row: RuleRow,
    now: Parameters<typeof this.api.examine>[0],
    trialId: string,
  ): Promise<string[]> {
    const trial = await this.fromStore(this.api.store.readRevision(trialId));
    const { examine } = this.api;
    return trial === undefined
      ? []
      : changesOfRule(domain, row, await examine(now), await examine(trial));
  }
}

/** The name without its domain. */
function toPath({ entries }: RuleRow): string {
  return entries.map(({ key, value }) => (value === '' ? key : `${key}_${value}`)).join('.');
}
