// The options for descriptors of a request.
import { type Command, Option } from 'commander';
import type { Entry } from '../../shared/rules/rule.ts';
import { exitCodes } from './command-frame.ts';

export type Descriptors = readonly (readonly Entry[])[];

const help = 'one descriptor of the request; repeat it for several';

export function addDescriptorOption(command: Command): Command {
  return command.addOption(toOption(command, 'descriptor', help).makeOptionMandatory());
}

/** The command checks that one of the two is given. */
export function addDescriptorOrBucketOptions(command: Command): Command {
  const bucket =
    "a bucket of Envoy's quota filter, whose entries have no order; repeat it for several";
  return command
    .addOption(toOption(command, 'descriptor', help))
    .addOption(toOption(command, 'bucket', bucket).conflicts('descriptor'));
}

function toOption(command: Command, name: string, help: string): Option {
  return new Option(`--${name} <key=value,...>`, help).argParser(
    (text: string, earlier: Descriptors | undefined) => [
      ...(earlier ?? []),
      parseEntries(command, name, text),
    ],
  );
}

function parseEntries(command: Command, name: string, text: string): Entry[] {
  return text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    if (equals <= 0) {
      const message = `error: --${name} '${text}': '${pair}' is not a pair; expected key=value,key=value`;
      command.error(message, { exitCode: exitCodes.error });
    }
    return { key: pair.slice(0, equals), value: pair.slice(equals + 1) };
  });
}
