// In-memory storage of the control planes' record for a test: beside the rules, and in a state directory.
import type { OwnRecord, OwnText } from '../../control-plane/server/record/own-text.ts';
import type { SharedText } from '../../control-plane/server/store/shared-text.ts';

export interface SimulatedText extends SharedText {
  mode: 'fine' | 'denied' | 'away';
  content: string | undefined;
  /** The number of successful writes. */
  writes: number;
  /** Called before a control plane writes: returns whether it is killed there. */
  onWrite: ((plane: string, text: string) => 'before' | 'after' | undefined) | undefined;
}

export function createMemoryText(): OwnText {
  let stored: OwnRecord | undefined;
  return {
    path: 'the own record',
    read: async () => stored,
    async setAside() {
      stored = undefined;
      return 'it is kept elsewhere';
    },
    save(given) {
      stored = given;
    },
    async write(given) {
      stored = given;
      return undefined;
    },
    restore() {},
    settled: async () => {},
  };
}

export function createSimulatedText(): SimulatedText {
  const text: SimulatedText = {
    description: 'the shared record',
    mode: 'fine',
    content: undefined,
    writes: 0,
    onWrite: undefined,
    async read() {
      if (text.mode === 'away') throw new Error('no route to it');
      return text.content === undefined
        ? undefined
        : { version: String(text.writes), text: text.content };
    },
    async swap(before, given) {
      if (text.mode === 'away') throw new Error('no route to it');
      if (text.mode === 'denied') return { kind: 'denied', reason: 'may only read' };
      const version = text.content === undefined ? undefined : String(text.writes);
      if (before !== version) return { kind: 'stale' };
      text.writes++;
      text.content = given;
      return { kind: 'written', version: String(text.writes) };
    },
    async setAside() {
      text.content = undefined;
      return 'the text aside';
    },
    close() {},
  };
  return text;
}
