// `/rollouts`: the state of a revision's rollout, actions on it, and the queries of peers.
import Type from 'typebox';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import { orNull } from '../../api-shape.ts';
import type { RolloutAction } from '../../rollout/changes.ts';
import { factsJson } from '../../rollout/facts.ts';
import {
  lastVerdictJson,
  rolloutJson,
  rolloutPlanJson,
  toLastVerdictJson,
  toRolloutJson,
  toRolloutPlanJson,
} from '../../rollout/rollout-json.ts';
import { toShortId } from '../../store/revision.ts';
import { shortestRevisionPrefix } from '../../store/store.ts';
import { AdminController } from '../admin-controller.ts';

const underWay = { rollout: orNull(rolloutJson) };
const stateJson = Type.Object({
  ...underWay,
  last: orNull(lastVerdictJson),
  /** Null if revisions reach all workers at once. */
  plan: orNull(rolloutPlanJson),
});
const doneJson = Type.Object({
  ...underWay,
  outcome: Type.String({ description: 'What was done, human-readable' }),
});
/** The answer to a query, or to an action, which has neither `last` nor `plan`. */
export type RolloutAnswerJson = Pick<Type.Static<typeof stateJson>, 'rollout'> &
  Partial<Type.Static<typeof stateJson> & Type.Static<typeof doneJson>>;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'The rollout that is under way',
    returns: { 200: stateJson },
  });

  GET() {
    const { rollout } = this.api;
    return {
      rollout: toRolloutJson(rollout.state()),
      last: toLastVerdictJson(rollout.memory()),
      plan: rollout.plan ? toRolloutPlanJson(rollout.plan) : null,
    };
  }

  static readonly POST = op({
    summary:
      'Pause or resume it, give the revision to all workers now, take it back, or try it again',
    body: Type.Object({
      action: Type.Union([
        Type.Literal('pause'),
        Type.Literal('resume'),
        Type.Literal('retry'),
        Type.Literal('promote'),
        Type.Literal('abort'),
      ]),
      reason: Type.String({ minLength: 1, maxLength: 4096, description: 'For the audit log' }),
      revision: Type.Optional(
        Type.String({
          minLength: shortestRevisionPrefix,
          maxLength: 256,
          description:
            'The one whose rollout is meant, or its beginning: of another one nothing is done',
        }),
      ),
      rollout: Type.Optional(
        Type.String({ maxLength: 64, description: 'The id of the one that is meant, likewise' }),
      ),
    }),
    returns: { 200: doneJson },
    failures: { 409: undefined },
  });

  async POST({ action, reason, ...meant }: Fields<typeof Default.POST>) {
    return this.audited(`${action} the rollout: ${reason}`, async (entry) => {
      const { rollout } = this.api;
      const before = rollout.state();
      const { newest } = this.api.snapshots.state();
      const trial = before?.revision ?? (action === 'retry' ? newest?.revision.id : undefined);
      const inForce = this.api.snapshots.state().inForce?.revision.id;
      const fullReason = `${words[action]} by ${entry.who}: ${reason}`;
      const refusal = rollout.plan
        ? await rollout.act(action, fullReason, entry.who, meant)
        : 'revisions are not rolled out in steps here (serve --rollout)';
      if (refusal !== undefined) throw new HttpError(409, { detail: refusal });
      // The revision before, for the workers that the action affects; a pause and its end affect none.
      entry.before = action === 'promote' ? inForce : trial;
      entry.after = action === 'abort' ? inForce : trial;
      const which = trial === undefined ? '' : ` of revision ${toShortId(trial)}`;
      return {
        rollout: toRolloutJson(rollout.state()),
        outcome: `the rollout${which} ${outcomes[action]}`,
      };
    });
  }
}

export class Workers extends AdminController {
  static readonly GET = op({
    summary: 'What is known about the workers of this control plane in a rollout',
    description: 'For the control plane that leads the rollout.',
    query: Type.Object({
      record: Type.Optional(
        Type.String({
          maxLength: 64,
          description: 'Identifies the state of the rollout that the caller knows',
        }),
      ),
      undoes: Type.Optional(
        Type.Boolean({
          description: 'Whether the caller has taken it back, and is to be asked why',
        }),
      ),
      peer: Type.Optional(
        Type.String({ maxLength: 64, description: 'The id of the control plane that asks' }),
      ),
    }),
    returns: { 200: factsJson },
    failures: { 409: undefined },
  });

  GET({ record, undoes, peer }: Fields<typeof Workers.GET>) {
    this.refuseItself(peer);
    return this.api.rollout.answerPeer(record, undoes);
  }
}

const outcomes: Readonly<Record<RolloutAction, string>> = {
  pause: 'is paused',
  retry: 'is tried again',
  resume: 'continues',
  promote: 'is done: all workers get the revision now',
  abort: 'is aborted: all workers return to the revision in force',
};

const words: Readonly<Record<RolloutAction, string>> = {
  pause: 'paused',
  retry: 'tried again',
  resume: 'resumed',
  promote: 'promoted',
  abort: 'aborted',
};
