// `/rollbacks`: a new revision with the files of an earlier one.

import Type from 'typebox';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { isError } from '../../../../shared/rules/problem/problem.ts';
import { type Revision, toShortId } from '../../store/revision.ts';
import { AdminController, allowRemoval, rollout } from '../admin-controller.ts';
import { InvalidRules, toReplacement } from '../change.ts';
import { refusedRules } from '../problem-json.ts';
import { revisionFields, toRevisionJson } from '../revision-json.ts';

const rollbackJson = Type.Object(
  {
    ...revisionFields,
    endedLifts: Type.Array(Type.String(), {
      description: 'Lifts that were made since, and end with it: domain and rule of the first ten',
    }),
  },
  { title: 'Rollback' },
);

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Go back to the files of an earlier revision',
    description:
      "All workers get them at once, also where revisions are rolled out in steps, unless `rollout` is 'steps'.",
    body: Type.Object({
      revision: Type.String({ minLength: 1, maxLength: 64, pattern: '^[0-9a-f]+$' }),
      expectedRevision: Type.Optional(
        Type.String({ maxLength: 64, description: 'The newest revision, as far as is known' }),
      ),
      message: Type.Optional(
        Type.String({ maxLength: 4096, description: 'Why, for the audit log' }),
      ),
      allowRemoval,
      rollout,
    }),
    returns: { 200: rollbackJson, 201: rollbackJson },
    failures: { 409: undefined, 412: undefined, 422: refusedRules, 503: undefined },
  });

  async POST({ revision, expectedRevision, message, ...asked }: Fields<typeof Default.POST>) {
    const made = await this.change(`roll back to ${toShortId(revision)}`, async () => {
      const target = await this.findRevision(revision);
      const where = `${toShortId(target.id)}${message === undefined ? '' : `: ${message}`}`;
      return {
        what: `roll back to ${where}`,
        message: `Roll back to ${where}`,
        expectedRevision: expectedRevision && (await this.expandRevision(expectedRevision)),
        toleratesOldErrors: false,
        allowsRemoval: asked.allowRemoval === true,
        isUndo: true,
        rollout: asked.rollout ?? 'now',
        plan(current: Revision) {
          // A file that was unreadable then cannot be restored: it would be deleted silently.
          const unread = target.problems.filter(isError);
          if (unread.length > 0) throw new InvalidRules(unread);
          return toReplacement(current, target.files);
        },
      };
    });
    this.response.status = made.after.id === made.before.id ? 200 : 201;
    return { ...toRevisionJson(made.after), endedLifts: made.endedLifts };
  }
}
