// A revision in an argument or an option of a command.
import { InvalidArgumentError } from 'commander';
import { shortestRevisionPrefix } from '../server/store/store.ts';

/** A part of the help of commands with a revision. */
export const revisionHelp = `its beginning is enough, at least ${shortestRevisionPrefix} characters`;

/** Parses an argument for commander, which adds the name of the argument or option to the error. */
export function parseRevision(text: string): string {
  if (!/^[0-9a-f]+$/.test(text)) {
    throw new InvalidArgumentError(
      'A revision has the characters 0-9 and a-f; `history` lists them.',
    );
  }
  if (text.length < shortestRevisionPrefix) {
    const given = text.length;
    const message = `It has ${given} of the at least ${shortestRevisionPrefix} characters that a revision needs.`;
    throw new InvalidArgumentError(message);
  }
  return text;
}
