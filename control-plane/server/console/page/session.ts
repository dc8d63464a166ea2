// The person at the console, with name and rights.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

export interface Session {
  /** The name of the token; `local` where none is needed. */
  readonly name: string;
  readonly scope: 'read' | 'write';
  /** Whether revisions are rolled out in steps. */
  readonly rollout: boolean;
  /** Where workers get their rules; null before it is open. */
  readonly xdsPort: number | null;
  /** The folder of the rules in their repository, such as `rules/`; '' at its root. */
  readonly folder: string;
  /** The address at which files of the rules can be read, with `{file}`, `{line}` and `{revision}`; null where that is not known. */
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

/** Why the person may not change anything; undefined when everything is allowed. */
export function useRefusal(): string | undefined {
  const { scope, name } = useContext(SessionContext);
  return scope === 'write' ? undefined : `the token ${name} may only read`;
}
