// What a pure step gives: the next state, and what is to be done, in its order.

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

/** Performs effects in the order in which steps name them: those of a step that happens meanwhile come last. If one
 * throws, the next call continues with those after it. */
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
