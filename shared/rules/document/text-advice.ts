// Warns of names, keys and values that are legal but hardly ever intended: with odd characters, as lists, or as patterns
// of other programs. Only `*` is special in a value, so no request has such a text.
import { isIP } from 'node:net';
import { toExcerpt } from '../../text-excerpt.ts';
import { findOddCharacter, withoutOddCharacters } from '../problem/odd-character.ts';
import type { ProblemRule } from '../problem/problem-rule.ts';
import {
  describeForeignComment,
  findForeignComment,
  findPlaceholder,
  renderHint,
} from '../yaml/foreign-syntax.ts';
import { listOf, type MapReader } from '../yaml/map-reader.ts';

const outerSpace = /^[ \t\r\n]|[ \t\r\n]$/;
/** Signs of a regular expression that occur in hardly any path, address or name. `v1.*` is a wildcard. */
const expressionSign =
  /^\/?\^(?!~)|\$(?:\/[a-z]{0,6})?$|\[:[a-z]{2,8}:\]|(?:^|[/()\]])\.\*|\.\+|\\[dswb./]|\][*+]|\(\?|\([^()|]{1,40}\|/;

/** Warns of the first oddity of the text only: one mistake makes one problem. */
export function adviseOnText(
  fields: MapReader,
  name: 'domain' | 'key' | 'value',
  text: string | undefined,
): void {
  if (!text) return;
  const odd = findOddCharacter(text);
  const warn = (rule: ProblemRule, message: string, hint: string) =>
    fields.advise(rule, name, `${name} has ${message}`, hint);
  if (odd !== undefined) {
    const meant = toExcerpt(withoutOddCharacters(text));
    warn(
      'odd-text',
      `${odd.description}; it is part of the ${name}`,
      `if that is not meant, write '${meant}'`,
    );
  } else if (outerSpace.test(text)) {
    const meant = toExcerpt(text.trim());
    const end = /^\s/.test(text) ? 'beginning' : 'end';
    warn(
      'odd-text',
      `white space at its ${end}; it is part of the ${name}`,
      `if that is not meant, write '${meant}'`,
    );
  } else if (findPlaceholder(text) !== undefined) {
    const shown = toExcerpt(findPlaceholder(text) ?? '');
    warn('odd-text', `a placeholder of a template in it: '${shown}' is not filled in`, renderHint);
  } else if (findForeignComment(text) !== undefined) {
    const sign = findForeignComment(text)?.sign;
    warn(
      'odd-text',
      `'${sign}' in it, which begins no comment`,
      describeForeignComment(text) ?? '',
    );
  } else if (name === 'value' && expressionSign.test(text)) {
    const hint = describeWildcard(text);
    warn(
      'regular-expression',
      `characters of a regular expression, but only '*' is special: all others are literal`,
      hint,
    );
  } else if (name === 'value') {
    const odd = findOddShape(text);
    if (odd !== undefined) warn('odd-value', odd.message, odd.hint);
  } else if (toItems(text) !== undefined) {
    const items = toItems(text) ?? [];
    const where =
      name === 'domain'
        ? 'write a document for each'
        : 'write one rule for each, or below each other for requests that have all';
    const hint = `${where}: ${describeItems(items)}`;
    warn('odd-text', 'the form of a list, but it is one literal text', hint);
  } else if (name === 'domain' && text.includes('*')) {
    const hint = 'write the domain as Envoy sends it';
    warn('odd-text', "a '*', which is literal here: a request names its full domain", hint);
  }
}

const addressRange = /^[0-9a-f:.]{2,45}\/(\d{1,3})$/i;
/** Keys that authors give to the address of a caller. */
const addressKey = /(?:^|[_-])(?:ip|addr|address|forwarded[_-]for)$/i;

const methodKey = /(?:^|[:_-])method$/i;
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** The method as requests have it, '' for one that stands for all; undefined for a method that requests can have. */
function toMethod(value: string): string | undefined {
  if (/^(?:any|all)$/i.test(value)) return '';
  const sent = value.toUpperCase();
  return sent !== value && methods.includes(sent) ? sent : undefined;
}

const pathKey = /(?:^|[:_-])path$/i;
/** A path without its slash, or with the scheme and host before it. */
const relativePath = /^(?:https?:\/\/[^/]{1,200}\/|(?=[\w.-]{1,200}\/))/i;

const addressHint = "write an address in full, or with '*' for any characters";

/**
 * An address as Envoy writes it: short, lower-case IPv6, and the first address of a range; '' for an invalid address.
 * Undefined if that is unknown, or other advice is given.
 */
function toSentAddress(key: string, value: string): string | undefined {
  const [, address = value, length] = /^(.*)\/(\d{1,3})$/.exec(value) ?? [];
  const isMasked = key === 'masked_remote_address';
  if (value.includes('*') || (!isMasked && length !== undefined)) return undefined;
  if (/^[\d.]+$/.test(address)) {
    if (isIP(address) !== 4 || (isMasked && length === undefined)) return '';
    return length === undefined ? address : toRange(address, Number(length));
  }
  if (isIP(address) !== 6 || address.includes('.')) return undefined;
  const short = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return length === undefined ? short : `${short}/${length}`;
}

function toRange(address: string, length: number): string {
  if (length > 32) return '';
  const first = address.split('.').map((part, index) => {
    const bits = Math.min(8, Math.max(0, length - 8 * index));
    return Number(part) & (0xff00 >> bits) & 0xff;
  });
  return `${first.join('.')}/${length}`;
}

const withPort = /^(?:\[([\da-f:.]{2,45})\]|((?:\d{1,3}\.){3}\d{1,3})(?=:))(?::\d{1,5})?$/i;

/** Warns of values that hardly match what their author expects, for example because of the key. */
export function adviseOnValue(fields: MapReader, key: string, value: string): void {
  const node = fields.given('value')?.node;
  if (node?.kind === 'null' && 'source' in node) {
    const shown = node.source === '' ? 'empty' : node.source;
    const meant = node.source === '' ? '' : `, else write it in quotes: '${node.source}'`;
    const message = `value is ${shown}, so any value matches`;
    fields.advise('null-value', 'value', message, `leave value out if that is meant${meant}`);
  }
  // The reference treats it as no value. Only a note: Envoy Gateway writes it where any value is meant.
  if (node?.kind === 'text' && value === '') {
    const hint = 'leave value out if that is meant; a rule for an empty value cannot be written';
    fields.advise('empty-value', 'value', 'value is an empty text, so any value matches', hint);
  }
  const method = methodKey.test(key) ? toMethod(value) : undefined;
  if (method !== undefined) {
    const hint =
      method === ''
        ? 'leave value out, and any method matches'
        : `write '${method}', as it is sent`;
    fields.advise('odd-value', 'value', `no request has the method '${value}'`, hint);
  }
  if (pathKey.test(key) && relativePath.test(value)) {
    const hint = `a path begins with a slash: write '${toExcerpt(value.replace(relativePath, '/'))}'`;
    fields.advise('odd-value', 'value', `no request has the path '${toExcerpt(value)}'`, hint);
  }
  const sent = key.endsWith('remote_address') ? toSentAddress(key, value) : undefined;
  if (sent !== undefined && sent !== value) {
    const message = `Envoy never sends '${toExcerpt(value)}' as a ${key}`;
    const hint =
      key === 'remote_address' ? addressHint : "write it with its length, such as '10.1.2.0/24'";
    fields.advise('address-range', 'value', message, sent === '' ? hint : `write '${sent}'`);
  }
  const [range, length] = addressRange.exec(value) ?? [];
  if (range !== undefined && addressKey.test(key) && !/mask/i.test(key)) {
    const version = value.includes(':') ? 'v6' : 'v4';
    const shown = key === 'remote_address' ? 'a remote_address' : `the ${toExcerpt(key)}`;
    const message = `${shown} is one address, so the range '${range}' matches none`;
    const hint = `write 'masked_remote_address', and let Envoy send that with ${version}_prefix_mask_len: ${length}`;
    fields.advise('address-range', 'value', message, hint);
  } else if (key === 'remote_address' && withPort.test(value)) {
    const message = `Envoy sends a remote_address without brackets and port, so '${toExcerpt(value)}' matches none`;
    const meant = toExcerpt(value.replace(withPort, '$1$2'));
    fields.advise('address-range', 'value', message, `write '${meant}'`);
  }
}

function describeWildcard(text: string): string {
  const meant = text
    .replace(/^\^/, '')
    .replace(/\$$/, '')
    .replaceAll(/\.[*+]/g, '*');
  const isWildcard = meant !== '' && meant.length <= 60 && !/[\\[\]()|+?^$]/.test(meant);
  return isWildcard
    ? `a '*' stands for any characters: write '${meant}'`
    : "a '*' stands for any characters; write one rule for each alternative";
}

interface OddShape {
  /** What the text contains, such as `'{id}'`; completes a sentence that begins with the field's name and "has". */
  readonly message: string;
  readonly hint: string;
}

/** A sign that every form below contains; most values contain none. */
const signs =
  /[|,;?{}[\]<>:$%!=~(\n]|\*\*|\.\.|^\.| or |\dx|\d ?- ?\d|^(?:path_|hdr_|starts|ends|like|matches|between)/i;
/** A longer text is no mistake, and would cost time. */
const maxLength = 1_000;

function findOddShape(value: string): OddShape | undefined {
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
function toItems(text: string): readonly string[] | undefined {
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

function describeItems(items: readonly string[]): string {
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
