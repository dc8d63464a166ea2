// `/approvals`: serves a revision that is held back because it removes most limits.

import Type from 'typebox';
import { HttpError } from '../../../shared/router/errors.ts';
import { type Fields, op } from '../../../shared/router/op.ts';
import { toShortId } from '../../store/revision.ts';
import { AdminController } from '../admin-controller.ts';
import { revisionJson, toRevisionJson } from '../revision-json.ts';

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Serve the revision that is held back because it removes most limits',
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
      const { newest, inForce } = this.api.snapshots.state();
      if (!this.api.snapshots.approve(id)) {
        const isNewest = newest?.revision.id === id;
        const detail = isNewest
          ? `revision ${toShortId(id)} is not held back`
          : `revision ${toShortId(id)} is not the newest one, which is ${toShortId(newest?.revision.id ?? 'not known')}`;
        throw new HttpError(409, { detail });
      }
      entry.before = inForce?.revision.id;
      entry.after = id;
      return toRevisionJson({ id, ...info });
    });
  }
}
