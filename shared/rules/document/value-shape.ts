// Finds values that are written as lists, or as patterns of other programs. Only `*` is special in a value, so no
// request has such a text.
import { toExcerpt } from '../../text-excerpt.ts';
import { listOf } from '../yaml/map-reader.ts';

export interface OddShape {
  /** What the text contains, such as `'{id}'`; completes a sentence that begins with the field's name and "has". */
  readonly message: string;
  readonly hint: string;
}

/** A sign that every form below contains; most values contain none. */
const signs =
  /[|,;?{}[\]<>:$%!=~(\n]|\*\*|\.\.|^\.| or |\dx|\d ?- ?\d|^(?:path_|hdr_|starts|ends|like|matches|between)/i;
/** A longer text is no mistake, and would cost time. */
const maxLength = 1_000;

export function findOddShape(value: string): OddShape | undefined {
  if (value.length > maxLength || !signs.test(value)) return undefined;
  const items = toItems(value);
  if (items !== undefined) {
    const hint = `write one rule for each: ${describeItems(items)}`;
    return { message: 'the form of a list, but it is one literal text', hint };
  }
  if (crossing.test(value)) {
    return { message: "'**', which means the same as '*' here", hint: describeCrossing(value) };
  }
  for (const { pattern, describeMeant } of forms) {
    const found = pattern.exec(value)?.[0];
    if (found === undefined) continue;
    const message = `'${toExcerpt(found.trim())}', which is literal: only '*' is special`;
    return { message, hint: describeMeant(value, pattern) };
  }
  return isGlobOfOneCharacter(value)
    ? { message: "'?', which is literal: only '*' is special", hint: describeStars(value, /\?/g) }
    : undefined;
}

const item = /^(?:[\w.*@:/+-]{1,64}|'[^']{1,64}'|"[^"]{1,64}")$/;
/** The names of Istio's clusters. */
const clusterName = /^(?:in|out)bound[^|]{0,40}\|\d{1,5}\|/;

/** The items of a text that is written as a list; undefined for another text. */
export function toItems(text: string): readonly string[] | undefined {
  if (text.length > maxLength || clusterName.test(text)) return undefined;
  const inner = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const items = inner.split(/\|\||[,;|\n]| or /).map((part) => part.trim());
  // A list over several lines ends with a line break.
  if (items.at(-1) === '' && text.endsWith('\n')) items.pop();
  if (items.length < 2 || !items.every((part) => item.test(part))) return undefined;
  // A path may contain commas.
  const isOfPaths = items[0]?.startsWith('/');
  if (isOfPaths && !items.every((part) => part.startsWith('/'))) return undefined;
  return items.map((part) => part.replaceAll(/^['"]|['"]$/g, ''));
}

const mostShown = 3;

export function describeItems(items: readonly string[]): string {
  const shown = items.slice(0, mostShown).map((text) => `'${toExcerpt(text)}'`);
  const more = items.length - shown.length;
  return listOf(more > 0 ? [...shown, `${more} more`] : shown);
}

interface Form {
  readonly pattern: RegExp;
  readonly describeMeant: (value: string, pattern: RegExp) => string;
}

const valueAlone = "write the value alone, with '*' for any characters";

const eachAlternative = () => 'write one rule for each alternative';

/** In the order in which they are searched. */
const forms: readonly Form[] = [
  // Conditions: in (a, b), PathPrefix(`/api`), startsWith("/api")
  { pattern: /^(?:not ?)?in ?\(/i, describeMeant: () => 'write one rule for each value' },
  {
    pattern:
      /^(?:path|pathprefix|pathregexp|host|hostregexp|hostsni|method|headers?|query|clientip|starts_?with|ends_?with|matches|like|any|oneof)\(/i,
    describeMeant: () => valueAlone,
  },
  // Words of HAProxy and SQL
  {
    pattern:
      /^(?:path_[a-z]{3}|hdr_[a-z]{3}|starts[ _]?with|ends[ _]?with|like|matches) (?=\S)|^between \S+ and /i,
    describeMeant: () => valueAlone,
  },
  // Envoy: %REQ(:path)%
  {
    pattern: /%[A-Z_]{2,60}(?:\([^()%]{0,80}\))?%/,
    describeMeant: () =>
      'Envoy fills it in before a rule sees it: leave value out, and any value matches',
  },
  // Shells: {a,b}
  { pattern: /\{[^{}"\n]{0,60},[^{}"\n]{0,60}\}/, describeMeant: eachAlternative },
  // Templates of paths: {id}, <int:id>, :id, $id, [id]; and sets of characters: [0-9]
  { pattern: /[#%]?\{[^{}"\n]{0,80}\}(?:\?(?=\/|$))?/, describeMeant: describeStars },
  { pattern: /<[A-Za-z_][\w:]{0,60}>/, describeMeant: describeStars },
  { pattern: /(?<=^|\/):[A-Za-z_]\w{0,60}[?*+]?(?=[/(]|$)/, describeMeant: describeStars },
  { pattern: /(?<=^|\/)%[sd](?=\/|$)/, describeMeant: describeStars },
  { pattern: /(?<=^|\/)\$[A-Za-z_]\w{0,60}(?=\/|$)/, describeMeant: describeStars },
  // An address of IPv6 has colons, and a query such as `filter[name]=x` continues.
  {
    pattern: /\[{1,2}(?![\da-fA-F.]{0,39}:)[^\][\s]{1,60}\]{1,2}(?![=[*+])/,
    describeMeant: describeStars,
  },
  // SQL: LIKE 'a%'; a percent sign before two digits is a character of a path.
  {
    pattern: /^%(?![\da-f]{2})|(?<=[^\d%])%$/i,
    describeMeant: (value) => describeStars(value, /%/g),
  },
  // Negations, comparisons, and other kinds of match.
  { pattern: /^(?:!|not[:=(])/i, describeMeant: describeOthers },
  {
    pattern:
      /^(?:==|= ?(?=\/)|=~|\^?~\*? ?(?=[ /])|[<>]=?(?=[ \d])|(?:re2?|regexp?|glob|prefix|suffix|exact|contains|in)[:=(])/i,
    describeMeant: () => valueAlone,
  },
  // Host names with all subdomains, as nginx writes them.
  {
    pattern: /^\.(?=[a-z0-9-]{1,60}(?:\.[a-z0-9-]{1,60}){0,6}\.[a-z]{2,20}$)/i,
    describeMeant: (value) => `a '*' stands for any characters: write '*${toExcerpt(value)}'`,
  },
  // Ranges: 1..5, 10.0.0.1-10.0.0.9, and classes of statuses: 5xx
  {
    pattern: /^\d{1,10}\.{2,3}\d{1,10}$|^(?:\d{1,3}\.){3}\d{1,3} ?- ?\d/,
    describeMeant: () => "write one rule for each value, or with '*' for any characters",
  },
  {
    pattern: /^[1-5]\d\d ?- ?[1-5]99$/,
    describeMeant: () => "write one rule for each class, such as '5*'",
  },
  { pattern: /^[1-5]xx$/i, describeMeant: (value) => describeStars(value, /xx/gi) },
];

/**
 * Globs cross directories with `**`, as a single star does here; and a pattern with one between slashes does not match
 * a lone slash.
 */
const crossing = /\*\*(?=[^*}])/;

function describeCrossing(value: string): string {
  const near = value.replaceAll(/\/\*\*+\//g, '/');
  const more =
    near.includes('*') || near === value ? '' : `; '${toExcerpt(near)}' is not among them`;
  return `${describeStars(value, crossing)}${more}`;
}

function describeStars(value: string, pattern: RegExp): string {
  const meant = value
    .replaceAll(new RegExp(pattern.source, pattern.flags.replace('g', '').concat('g')), '*')
    .replaceAll(/\*+/g, '*');
  if (meant === '*') return 'leave value out, and any value matches';
  return `a '*' stands for any characters, also '/': write '${toExcerpt(meant)}'`;
}

function describeOthers(): string {
  return 'give the value a rule of its own, and the others a rule without value';
}

/** A `?` begins the query of a path; elsewhere it stands for one character in globs. */
function isGlobOfOneCharacter(value: string): boolean {
  if (!value.includes('?') || /[=\s]/.test(value)) return false;
  return /\?(?:[/.?_-]|$)/.test(value) || !/^(?:\/|https?:)/.test(value);
}
