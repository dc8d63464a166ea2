// Answers the control plane's questions about counters. The control plane is trusted, but may ask too much: everything
// is bounded.
import type {
  CounterMessage,
  CountersAnswerMessage,
  DescriptorMessage,
  ToWorkerMessage,
} from '../../shared/wire/fleet-messages.ts';
import type { CounterAccess, CounterState, CountersAsked } from '../decision/counter-access.ts';

export interface LinkAnswersDeps {
  readonly counters: () => CounterAccess | undefined;
  readonly allowsReset: boolean;
  /** Whether each of several processes counts separately. */
  readonly isAlone: boolean;
}

export interface LinkAnswers {
  /** `send` sends an answer, and calls back when it was sent. */
  receive(
    message: ToWorkerMessage,
    send: (answer: CountersAnswerMessage, onSent: () => void) => void,
  ): void;
}

export const maxDescriptors = 20;
const maxEntries = 32;
const maxLength = 4_096;
/** The most questions that are unanswered, or whose answers were not sent yet. */
export const maxOpen = 8;
const timeoutMs = 1_000;

export function createLinkAnswers({
  counters,
  allowsReset,
  isAlone,
}: LinkAnswersDeps): LinkAnswers {
  let open = 0;

  async function answer(
    asked: CountersAsked | undefined,
    reset: boolean,
  ): Promise<Omit<CountersAnswerMessage, 'id'>> {
    const refuse = (problem: string) => ({ problem, counters: [] });
    const access = counters();
    if (asked === undefined) return refuse('the question is too long');
    if (reset && !allowsReset) {
      return refuse('CONFIG_FLEET_LINK_RESET=false: this worker resets no counters');
    }
    if (isAlone) return refuse('its processes count by themselves, in memory');
    if (access === undefined) return refuse('it is starting');
    const result = await access.ask(asked, reset, timeoutMs);
    if (!result.ok) return refuse(result.problem);
    return { problem: '', counters: result.counters.map(toMessage) };
  }

  return {
    receive({ counters: question, forget }, send) {
      if (forget != null) {
        const asked = toAsked(forget);
        if (asked !== undefined) counters()?.forget(asked);
      }
      if (question == null || open >= maxOpen) return;
      const { id, reset } = question;
      open++;
      void answer(toAsked(question), reset).then((given) =>
        send({ id, ...given }, () => {
          open--;
        }),
      );
    },
  };
}

/** Undefined when it exceeds the bounds. */
function toAsked({
  domain,
  descriptors,
}: {
  readonly domain: string;
  readonly descriptors: readonly DescriptorMessage[];
}): CountersAsked | undefined {
  const isShort = descriptors.every(
    ({ entries }) =>
      entries.length <= maxEntries &&
      entries.every(({ key, value }) => key.length + value.length <= maxLength),
  );
  if (descriptors.length > maxDescriptors || domain.length > maxLength || !isShort)
    return undefined;
  return { domain, descriptors: descriptors.map(({ entries }) => entries) };
}

function toMessage(state: CounterState): CounterMessage {
  return state.problem === undefined ? { ...state, problem: '' } : state;
}
