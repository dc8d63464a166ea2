// Sends one request to the admin API, for commands that only need the answer.
import type { AdminCall, AdminClient } from '../../server/admin-client.ts';
import { type CommandFrame, type ExitCode, exitCodes } from '../command-frame.ts';
import { type AdminOptions, openAdminClient } from './admin-options.ts';
import { formatRefusal } from './answer-text.ts';

/** Undefined if there is no answer, or a refusal; the error has been printed then. `codes`: the exit codes of statuses
 * that are not failures. */
export async function askAdmin<Value>(
  { io, finish, fail }: CommandFrame,
  options: AdminOptions,
  call: AdminCall,
  codes: Readonly<Record<number, ExitCode>> = {},
): Promise<{ readonly value: Value; readonly client: AdminClient } | undefined> {
  const opened = await openAdminClient(options, io.environment);
  if (!opened.ok) {
    fail(opened.message);
    return undefined;
  }
  const result = await opened.client.call(call);
  if (!result.ok) {
    fail(result.message);
    return undefined;
  }
  const { answer } = result;
  if (answer.status === 200) return { value: answer.value as Value, client: opened.client };
  io.writeError(formatRefusal(answer));
  finish(codes[answer.status] ?? exitCodes.error);
  return undefined;
}
