// Writes lines to an output of the process, where statistics have no receiver.
import type { LineOutput } from '../../shared/line-output.ts';
import type { LineTransport } from './line-sink.ts';

/** The output stays open; buffered lines are written when the process ends. */
export function createOutputLines(output: LineOutput): LineTransport {
  return {
    get ready() {
      return output.ready;
    },
    send: output.write,
    close: async () => {},
  };
}
