// Reads rules from a control plane: one revision of its store, or the one in force.
import { errorText } from '../../../shared/errors.ts';
import type { RulesFile } from '../../../shared/rules-file.ts';
import { policyFile } from '../../authoring/policy/policy-file.ts';
import { fromProblemJson, type ProblemJson } from '../../server/admin/problem-json.ts';
import { nodeGroupsFile } from '../../server/snapshot/node-groups.ts';
import { type AdminOptions, openAdminClient } from '../admin/admin-options.ts';
import { formatRefusal } from '../admin/answer-text.ts';
import type { CommandIo } from '../command-frame.ts';
import { parseRevision } from '../revision-argument.ts';
import type { RuleInputResult } from './rule-texts.ts';

/** The prefix of a control plane's revision, where files may be named as well. */
export const serverPrefix = 'server:';

interface ServerRevision {
  readonly valid: boolean;
  readonly files: readonly RulesFile[];
  readonly problems: readonly ProblemJson[];
}

/** `revision`: a prefix of its id, or '' for the one in force. The rules of a server are valid under its settings, so
 * the files of a domain are merged. */
export async function readServerInput(
  revision: string,
  options: AdminOptions,
  { environment }: Pick<CommandIo, 'environment'>,
): Promise<RuleInputResult> {
  if (revision !== '') {
    try {
      parseRevision(revision);
    } catch (error) {
      return { ok: false, message: `'${serverPrefix}${revision}': ${errorText(error)}` };
    }
  }
  const opened = await openAdminClient(options, environment);
  if (!opened.ok) return opened;
  const { client } = opened;
  const read = async <Answer>(path: string) => {
    const result = await client.call({ method: 'GET', path });
    if (!result.ok) return result;
    const { status, value } = result.answer;
    if (status === 200) return { ok: true, value: value as Answer } as const;
    const message = formatRefusal(result.answer)
      .trimEnd()
      .replace(/^error: /, '');
    return { ok: false, message } as const;
  };
  const named =
    revision === ''
      ? await read<{ readonly revision: string }>('/rules?limit=1')
      : ({ ok: true, value: { revision } } as const);
  if (!named.ok) return named;
  const found = await read<ServerRevision>(
    `/revisions/${encodeURIComponent(named.value.revision)}`,
  );
  if (!found.ok) return found;
  const { valid, files, problems } = found.value;
  // The server knows under which settings the rules have errors.
  const texts = valid
    ? { files, problems: [] }
    : { files: [], problems: problems.map(fromProblemJson) };
  return {
    ok: true,
    input: { ...texts, nodeGroupsPath: nodeGroupsFile, policyPath: policyFile, commit: undefined },
  };
}
