// The user of the console, with name and rights.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

export interface Session {
  /** The name of the token; `local` if none is needed. */
  readonly name: string;
  readonly scope: 'read' | 'write';
  /** Whether revisions are rolled out in steps. */
  readonly rollout: boolean;
  /** The port that serves rules to workers; null before it is open. */
  readonly xdsPort: number | null;
  /** The folder of the rules in their repository, such as `rules/`; '' at its root. */
  readonly folder: string;
  /** The address of rules files, with `{file}`, `{line}` and `{revision}`; null if it is unknown. */
  readonly sourceUrl: string | null;
}

export const SessionContext = createContext<Session>({
  name: '',
  scope: 'read',
  rollout: false,
  xdsPort: null,
  folder: '',
  sourceUrl: null,
});

/** Why the user is not allowed to change anything; undefined if changes are allowed. */
export function useRefusal(): string | undefined {
  const { scope, name } = useContext(SessionContext);
  return scope === 'write' ? undefined : `the token ${name} can only read`;
}
