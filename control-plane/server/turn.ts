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
