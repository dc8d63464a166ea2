// `/approvals`: approves a revision that waits because it removes most limits, or because no share of the workers can
// receive it first.

import Type from 'typebox';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import { toShortId } from '../../store/revision.ts';
import { AdminController } from '../admin-controller.ts';
import { revisionJson, toRevisionJson } from '../revision-json.ts';

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Let the revision through that is held back, at all control planes',
    description:
      'It removes most limits, or no share of the workers can have it first. Where revisions reach the workers in steps, one that removes most limits begins them.',
    body: Type.Object({
      revision: Type.String({ minLength: 1, maxLength: 64, pattern: '^[0-9a-f]+$' }),
      reason: Type.String({ minLength: 1, maxLength: 4096, description: 'For the audit log' }),
    }),
    returns: { 200: revisionJson },
    failures: { 409: undefined, 503: undefined },
  });

  async POST({ revision, reason }: Fields<typeof Default.POST>) {
    return this.audited(`approve revision ${toShortId(revision)}: ${reason}`, async (entry) => {
      const { id, ...info } = await this.findRevision(revision);
      const { inForce } = this.api.snapshots.state();
      const refusal = await this.api.rollout.approve(id, reason, entry.who);
      if (refusal !== undefined) throw new HttpError(409, { detail: refusal });
      entry.before = inForce?.revision.id;
      entry.after = id;
      return toRevisionJson({ id, ...info });
    });
  }
}
