// The option by which commands take descriptors of a request.
import type { Command } from 'commander';
import type { Entry } from '../../shared/rules/rule.ts';
import { exitCodes } from './command-frame.ts';

export type Descriptors = readonly (readonly Entry[])[];

export function addDescriptorOption(command: Command): Command {
  return command.requiredOption(
    '--descriptor <key=value,...>',
    'one descriptor of the request; repeat it for several',
    (text: string, earlier: Descriptors | undefined) => [
      ...(earlier ?? []),
      parseDescriptor(command, text),
    ],
  );
}

function parseDescriptor(command: Command, text: string): Entry[] {
  return text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    if (equals <= 0) {
      const message = `error: --descriptor '${text}': '${pair}' is not a pair; expected key=value,key=value`;
      command.error(message, { exitCode: exitCodes.trouble });
    }
    return { key: pair.slice(0, equals), value: pair.slice(equals + 1) };
  });
}
