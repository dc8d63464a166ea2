// A method of the table as operators and servers see it, without the internals of the table.
import type { Limits } from '../limits.ts';
import type { Op } from '../op.ts';

export interface ServedMethod {
  /** The path without positional parameters, except folders that represent one: `/`, `/ops/drain`,
   * `/notes/[id]/comments`. */
  readonly path: string;
  /** Names of the positional parameters, consistent across the methods of a class. */
  readonly parameters: readonly string[];
  readonly route: {
    readonly verb: string;
    /** `<module>:<Class>.<method>`, human-readable. */
    readonly name: string;
    readonly op: Op | undefined;
    readonly limits: Limits;
  };
}
