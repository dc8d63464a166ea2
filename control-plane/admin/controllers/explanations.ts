// `/explanations`: which limits apply to a request under the rules in force, and why.
import Type from 'typebox';
import { HttpError } from '../../../shared/router/errors.ts';
import { type Fields, op } from '../../../shared/router/op.ts';
import { explainRequest } from '../../explain/explained-request.ts';
import { toExplanationJson } from '../../explain/explanation-json.ts';
import { AdminController } from '../admin-controller.ts';
import { placedRules } from '../rule-rows.ts';

const entry = Type.Object({
  key: Type.String({ minLength: 1, maxLength: 4096 }),
  value: Type.String({ maxLength: 4096, default: '' }),
});

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Which limits apply to a request, and why',
    body: Type.Object({
      domain: Type.String({ minLength: 1, maxLength: 1024 }),
      descriptors: Type.Array(Type.Array(entry, { minItems: 1, maxItems: 100 }), {
        minItems: 1,
        maxItems: 100,
      }),
      revision: Type.Optional(
        Type.String({ minLength: 1, maxLength: 64, description: 'In place of that in force' }),
      ),
    }),
    failures: { 409: undefined, 503: undefined },
    returns: {
      200: Type.Object({
        revision: Type.String(),
        domain: Type.String(),
        descriptors: Type.Array(Type.Object({}, { additionalProperties: true })),
      }),
    },
  });

  async POST({ domain, descriptors, revision: wanted }: Fields<typeof Default.POST>) {
    const { id, ruleSet, documents } =
      wanted === undefined ? this.findInForce() : await this.examineRevision(wanted);
    const rules = placedRules(documents).get(domain);
    const domainRules = ruleSet.domain(domain);
    if (rules === undefined || domainRules === undefined) {
      throw new HttpError(404, { detail: `there are no rules for domain ${domain}` });
    }
    const explained = explainRequest(rules, domainRules, descriptors, this.api.clock.wallMs());
    return { revision: id, ...toExplanationJson(domain, explained) };
  }

  private findInForce() {
    const { ruleSet, documents, state } = this.api.snapshots;
    const { inForce } = state();
    if (ruleSet === undefined || inForce === undefined) {
      throw this.refuse(503, 'nothing is in force yet');
    }
    return { id: inForce.revision.id, ruleSet, documents };
  }

  private async examineRevision(wanted: string) {
    const revision = await this.findRevision(wanted);
    const { ruleSet, documents } = this.api.examine(revision);
    if (ruleSet === undefined) {
      throw new HttpError(409, { detail: `revision ${revision.id} has errors: nothing follows` });
    }
    return { id: revision.id, ruleSet, documents };
  }
}
