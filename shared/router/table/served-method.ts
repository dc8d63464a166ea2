// A method of the table as operators and servers see it: without what the table itself is made of.
import type { Limits } from '../limits.ts';
import type { Op } from '../op.ts';

export interface ServedMethod {
  /** Without positional parameters, but with folders that stand for one: `/`, `/ops/drain`, `/notes/[id]/comments`. */
  readonly path: string;
  /** Names of the positional parameters, agreed among the methods of one class. */
  readonly parameters: readonly string[];
  readonly route: {
    readonly verb: string;
    /** `<module>:<Class>.<method>`, human-readable. */
    readonly name: string;
    readonly op: Op | undefined;
    readonly limits: Limits;
  };
}
