// What a pure step gives: the next state, and what is to be done, in its order. What a control plane has in force is the
// state of three machines, each with a step and a file that performs its effects:
//   serving  snapshot/serving-state.ts (cache.ts)         the revisions that are served, and the newest one
//   record   record/record-step.ts (record-keeper.ts)     what all control planes have decided
//   fleet    rollout/fleet-step.ts (rollout.ts)           who gets the revision on trial, and for how long
// Where they meet, an effect of one is an event of another:
//   fleet -> serving   `reconsider`, `offer_trial`, `end_trial`, `take_back_trial`, `end_first`, `follow_trial`,
//                      `follow_in_force`
//   fleet -> record    `tick`, `noticed`, `stored_locally`; `write`, which becomes `wanted`
//   record -> fleet    `changed`, which becomes `check`; `done`, which becomes `written`
//   serving -> fleet   `refresh` and `newest`, which become `check`
// Each reads the state of the others as facts: serving knows the record as RevisionMemory. Each has its own EffectQueue:
// effects of an event that an effect causes in the same machine come after all that are waiting.

export interface Turn<State, Effect> {
  readonly state: State;
  readonly effects: readonly Effect[];
}

/** The turn with a change of its state, and with more to be done after what is to be done already. */
export function become<State, Effect>(
  { state, effects }: Turn<State, Effect>,
  change: Partial<NoInfer<State>>,
  ...more: readonly NoInfer<Effect>[]
): Turn<State, Effect> {
  return { state: { ...state, ...change }, effects: [...effects, ...more] };
}

/** Performs effects in the order in which steps list them. If one throws, the next call continues with those after
 * it. */
export class EffectQueue<Effect extends object> {
  readonly #effects: Effect[] = [];
  #isPerforming = false;

  perform(effects: readonly Effect[], perform: (effect: Effect) => void): void {
    this.#effects.push(...effects);
    if (this.#isPerforming) return;
    this.#isPerforming = true;
    try {
      for (let each = this.#effects.shift(); each; each = this.#effects.shift()) perform(each);
    } finally {
      this.#isPerforming = false;
    }
  }
}
