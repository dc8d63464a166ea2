// The keys of a rules document, one row each. From the rows follow: which keys are known and where; how a flag is read,
// sent over xDS, compared and explained; the table in the guide; and the JSON Schema for editors. A key's effect is
// implemented where it applies.
import { algorithms } from './limit-shape.ts';
import { units } from './unit.ts';

export type Section = 'document' | 'descriptor' | 'rate_limit' | 'replaces' | 'lease';

export const maxCount = 0xffff_ffff;
/** The number of limits in `rate_limits`. */
export const leastListed = 2;
export const mostListed = 8;

interface Row {
  /** The name in YAML. */
  readonly name: string;
  readonly sections: readonly Section[];
  /** A text for the guide and for editors. */
  readonly meaning: string;
  /**
   * Sent to Ratelane workers only: wire/resource-fields.ts packs it. A row without this is not sent by itself either:
   * wire/resource.ts writes the fields of the public message, and other keys stay with the author.
   */
  readonly isExtension?: boolean;
}

interface TextRow extends Row {
  readonly type: 'text';
  /** The only words allowed, in upper or lower case; without it, any text is. */
  readonly words?: readonly string[];
  /** A regular expression for editors, which every valid text matches; numbers and booleans do not. */
  readonly pattern?: string;
  readonly isRequired?: boolean;
}

/** A whole number. */
interface CountRow extends Row {
  readonly type: 'count';
  readonly min: number;
  readonly max: number;
}

interface FlagRow extends Row {
  readonly type: 'flag';
  readonly sections: readonly ['descriptor'];
  /**
   * `public`: a field of the public configuration message, by this name in camel case; `extension`: a field sent to
   * Ratelane workers only.
   */
  readonly wire: 'public' | 'extension';
  /** Whether the flag has no effect on a descriptor without a limit. */
  readonly needsLimit: boolean;
}

/** A flag that changes the key or the name of the counter of a hit. */
interface MatchFlagRow extends FlagRow {
  readonly of: 'match';
}

/** A flag that is a mode of the limit beside it. */
interface LimitModeRow extends FlagRow {
  readonly of: 'limit';
  /** The words by which `explain` describes a limit in this mode. */
  readonly explained: string;
}

/** A flag within rate_limit. */
interface LimitFlagRow extends Row {
  readonly type: 'limit_flag';
}

/** A mapping, or a list of mappings, whose keys are those of the section `holds`. */
interface NestedRow extends Row {
  readonly type: 'map' | 'list';
  readonly holds: Section;
  /** The bounds of a list's length. */
  readonly items?: readonly [least: number, most: number];
}

/** A mapping with any content. */
interface DataRow extends Row {
  readonly type: 'data';
}

export type RuleKey =
  | TextRow
  | CountRow
  | MatchFlagRow
  | LimitModeRow
  | LimitFlagRow
  | NestedRow
  | DataRow;

export const ruleKeys = [
  {
    name: 'domain',
    sections: ['document'],
    type: 'text',
    isRequired: true,
    meaning: 'the domain of the rules; required',
  },
  {
    name: 'name',
    sections: ['document'],
    type: 'text',
    meaning: 'has no effect; the name of a resource in documents that gateways generate',
  },
  {
    name: 'key',
    sections: ['descriptor'],
    type: 'text',
    isRequired: true,
    meaning: 'the key of the entry; required',
  },
  {
    name: 'value',
    sections: ['descriptor'],
    type: 'text',
    meaning: 'its value, in which `*` stands for any characters; without it, any value',
  },
  {
    name: 'rate_limit',
    sections: ['descriptor'],
    type: 'map',
    holds: 'rate_limit',
    meaning: 'the limit; without one, no limit applies',
  },
  {
    name: 'rate_limits',
    sections: ['descriptor'],
    type: 'list',
    holds: 'rate_limit',
    items: [leastListed, mostListed],
    meaning: `in place of \`rate_limit\`: ${leastListed} to ${mostListed} limits that all hold`,
  },
  {
    name: 'descriptors',
    sections: ['document', 'descriptor'],
    type: 'list',
    holds: 'descriptor',
    meaning: 'a list of rules; those of a descriptor are for the entry after its own',
  },
  {
    name: 'shadow_mode',
    sections: ['descriptor'],
    type: 'flag',
    wire: 'public',
    of: 'limit',
    needsLimit: true,
    explained: 'counted, but never over the limit',
    meaning: 'count and report, but let pass',
  },
  {
    name: 'quota_mode',
    sections: ['descriptor'],
    type: 'flag',
    wire: 'public',
    of: 'limit',
    needsLimit: true,
    explained: 'the request is over only when all its quota rules are',
    meaning: 'over the limit only together with all other quotas of a request',
  },
  {
    name: 'detailed_metric',
    sections: ['descriptor'],
    type: 'flag',
    wire: 'public',
    of: 'match',
    needsLimit: true,
    meaning: 'statistics for each value, at all levels',
  },
  {
    name: 'value_to_metric',
    sections: ['descriptor'],
    type: 'flag',
    wire: 'extension',
    of: 'match',
    needsLimit: false,
    meaning: 'statistics for each value, of this level',
  },
  {
    name: 'share_threshold',
    sections: ['descriptor'],
    type: 'flag',
    wire: 'extension',
    of: 'match',
    needsLimit: false,
    meaning: 'one counter for all values of a wildcard at the end',
  },
  {
    name: 'until',
    sections: ['descriptor'],
    type: 'text',
    pattern:
      '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$',
    isExtension: true,
    meaning: 'when it ends by itself, such as `2026-11-24T18:00:00Z`; after that it is ignored',
  },
  {
    name: 'metadata',
    sections: ['descriptor'],
    type: 'data',
    meaning: "goes to Envoy's filters as dynamic metadata",
  },
  {
    name: 'unit',
    sections: ['rate_limit'],
    type: 'text',
    words: units,
    meaning: `${wordsOf(units)}; required unless unlimited`,
  },
  {
    name: 'requests_per_unit',
    sections: ['rate_limit'],
    type: 'count',
    min: 0,
    max: maxCount,
    meaning: `0 to ${maxCount}; required unless unlimited`,
  },
  {
    name: 'unit_multiplier',
    sections: ['rate_limit'],
    type: 'count',
    min: 1,
    max: maxCount,
    isExtension: true,
    meaning: 'how many units a window is long, such as 5 for 5 minutes; default 1',
  },
  {
    name: 'algorithm',
    sections: ['rate_limit'],
    type: 'text',
    words: algorithms,
    isExtension: true,
    meaning: `${wordsOf(algorithms)}; default \`fixed_window\``,
  },
  {
    name: 'burst',
    sections: ['rate_limit'],
    type: 'count',
    min: 1,
    max: maxCount,
    isExtension: true,
    meaning: 'of a token bucket: how many hits at once; default `requests_per_unit`',
  },
  {
    name: 'count_over_limit',
    sections: ['rate_limit'],
    type: 'limit_flag',
    isExtension: true,
    meaning: 'of a sliding window or token bucket: count hits over the limit too; default false',
  },
  {
    name: 'lease',
    sections: ['rate_limit'],
    type: 'map',
    holds: 'lease',
    isExtension: true,
    meaning: 'lets a worker take many hits of a hot counter at once',
  },
  {
    name: 'share',
    sections: ['lease'],
    type: 'text',
    isRequired: true,
    pattern: '^[0-9.]+%$',
    meaning: 'a share of the remaining hits, such as `5%`, at most `50%`; required',
  },
  {
    name: 'for',
    sections: ['lease'],
    type: 'text',
    isRequired: true,
    pattern: '^[+0-9.]+[a-zµμ]',
    meaning: 'how long it lasts, `50ms` to `10s`; required',
  },
  {
    name: 'unlimited',
    sections: ['rate_limit'],
    type: 'limit_flag',
    meaning: 'no limit, and no counting',
  },
  {
    name: 'name',
    sections: ['rate_limit'],
    type: 'text',
    meaning: 'for `replaces`, and shown in answers',
  },
  {
    name: 'replaces',
    sections: ['rate_limit'],
    type: 'list',
    holds: 'replaces',
    meaning: 'a list of `name: ...`; those rules do not count for the same request',
  },
  {
    name: 'name',
    sections: ['replaces'],
    type: 'text',
    isRequired: true,
    meaning: 'the name of a rule that does not count; required',
  },
] as const satisfies readonly RuleKey[];

type Flag = Extract<(typeof ruleKeys)[number], { type: 'flag' }>;
type CamelCase<Name extends string> = Name extends `${infer Word}_${infer Rest}`
  ? `${Word}${Capitalize<CamelCase<Rest>>}`
  : Name;
type FlagsOf<Rows extends Flag> = { readonly [R in Rows as CamelCase<R['name']>]: boolean };

type LimitMode = Extract<Flag, { of: 'limit' }>;

/** The flags of a descriptor, by their names in camel case. */
export type DescriptorFlags = FlagsOf<Flag>;
/** The flags that are modes of the limit beside them. */
export type LimitModes = FlagsOf<LimitMode>;

/** A row with the property that holds its flag in objects. */
type WithProperty<R extends Flag> = R extends Flag
  ? R & { readonly property: CamelCase<R['name']> }
  : never;

export const descriptorFlags = ruleKeys.filter((row) => row.type === 'flag').map(withProperty);
export const limitModes = ruleKeys
  .filter((row): row is LimitMode => row.type === 'flag' && row.of === 'limit')
  .map(withProperty);

export function toFlags(
  isOn: (flag: (typeof descriptorFlags)[number]) => boolean,
): DescriptorFlags {
  return Object.fromEntries(
    descriptorFlags.map((flag) => [flag.property, isOn(flag)]),
  ) as unknown as DescriptorFlags;
}

export function toModes(isOn: (property: keyof LimitModes) => boolean): LimitModes {
  return Object.fromEntries(
    limitModes.map(({ property }) => [property, isOn(property)]),
  ) as unknown as LimitModes;
}

export const noFlags = toFlags(() => false);
export const noModes = toModes(() => false);

/** The names of the keys, in the order of the rows. */
export function keysAt(section: Section): readonly string[] {
  return ruleKeys
    .filter(({ sections }) => (sections as readonly Section[]).includes(section))
    .map(({ name }) => name);
}

function withProperty<R extends Flag>(row: R): WithProperty<R> {
  const property = row.name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return { ...row, property } as unknown as WithProperty<R>;
}

function wordsOf(words: readonly string[]): string {
  const quoted = words.map((word) => `\`${word}\``);
  return `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}
