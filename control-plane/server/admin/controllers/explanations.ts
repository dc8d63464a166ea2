// `/explanations`: which limits apply to a request under the rules in force, and why.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, HttpError, op, Stop } from '../../../../shared/router/index.ts';
import { explainRequest } from '../../../authoring/explain/explained-request.ts';
import { toExplanationJson } from '../../../authoring/explain/explanation-json.ts';
import { orNull } from '../../api-shape.ts';
import { type CountersJson, countersJson, mostDescriptors } from '../../fleet/counter-answers.ts';
import { AdminController } from '../admin-controller.ts';
import { outcomeJson, toOutcome } from '../outcome-json.ts';
import { findRulesNow, toUnknownDomainText } from '../rule-rows.ts';

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
      now: Type.Boolean({
        default: false,
        description:
          'Ask the workers how far the counters are as well, and predict the answer to the request now',
      }),
    }),
    failures: { 409: undefined, 503: undefined },
    returns: {
      200: Type.Object({
        revision: Type.String(),
        domain: Type.String(),
        descriptors: Type.Array(Type.Object({}, { additionalProperties: true })),
        outcome: orNull(outcomeJson),
        counters: orNull(countersJson),
      }),
    },
  });

  async POST({ domain, descriptors, revision: wanted, now }: Fields<typeof Default.POST>) {
    const { id, documents } =
      wanted === undefined ? this.findInForce() : await this.examineRevision(wanted);
    const nowMs = this.api.clock.wallMs();
    const rules = await runInSlices(findRulesNow(documents, domain, nowMs));
    if (rules === undefined) {
      const known = documents.map((document) => document.domain);
      throw new HttpError(404, { detail: toUnknownDomainText(domain, known) });
    }
    const explained = await runInSlices(explainRequest(domain, rules, descriptors, nowMs));
    const explanation = { revision: id, ...toExplanationJson(domain, explained) };
    if (!now) return { ...explanation, outcome: null, counters: null };
    const counters = await this.readCounters(domain, descriptors);
    return {
      ...explanation,
      outcome: toOutcome(explained, counters),
      counters: typeof counters === 'string' ? null : counters,
    };
  }

  /** The counters, or why they are unknown. */
  private async readCounters(
    domain: string,
    descriptors: Fields<typeof Default.POST>['descriptors'],
  ): Promise<CountersJson | string> {
    if (descriptors.length > mostDescriptors) {
      return `workers are asked about ${mostDescriptors} descriptors at most`;
    }
    try {
      return await this.askCounters('/counters', { domain, descriptors }, undefined);
    } catch (error) {
      if (error instanceof HttpError || error instanceof Stop) return error.message;
      throw error;
    }
  }

  private findInForce() {
    const { snapshots } = this.api;
    const { ruleSet, documents } = snapshots;
    const { inForce } = snapshots.state();
    if (ruleSet === undefined || inForce === undefined) {
      throw this.refuse(503, 'no revision is in force yet');
    }
    return { id: inForce.revision.id, documents };
  }

  private async examineRevision(wanted: string) {
    const revision = await this.findRevision(wanted);
    const { ruleSet, documents } = await this.api.examine(revision);
    if (ruleSet === undefined) {
      throw new HttpError(409, { detail: `revision ${revision.id} has errors: nothing follows` });
    }
    return { id: revision.id, documents };
  }
}
