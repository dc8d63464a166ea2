// Finds what is legal in the text of a name, a key or a value, and hardly ever meant.
import { toExcerpt } from '../../text-excerpt.ts';
import { findOddCharacter, withoutOddCharacters } from '../problem/odd-character.ts';
import type { ProblemRule } from '../problem/problem-rule.ts';
import type { MapReader } from '../yaml/map-reader.ts';
import { findPlaceholder, renderHint } from '../yaml/template.ts';

const outerSpace = /^[ \t\r\n]|[ \t\r\n]$/;
/** Signs of a regular expression that hardly any path, address or name has. `v1.*` is a wildcard. */
const expressionSign = /^\^|\$$|(?:^|[/)\]])\.\*|\.\+|\\[dswb./]|\][*+]|\(\?|\([^()|]{1,40}\|/;

/** Warns of the first oddity of the text: one mistake makes one problem. */
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
    const place = /^\s/.test(text) ? 'beginning' : 'end';
    warn(
      'odd-text',
      `white space at its ${place}; it is part of the ${name}`,
      `if that is not meant, write '${meant}'`,
    );
  } else if (findPlaceholder(text) !== undefined) {
    const shown = toExcerpt(findPlaceholder(text) ?? '');
    warn('odd-text', `a placeholder of a template in it: '${shown}' is not filled in`, renderHint);
  } else if (name === 'value' && expressionSign.test(text)) {
    const hint = describeWildcard(text);
    warn(
      'regular-expression',
      `signs of a regular expression, but only '*' is special: all others are literal`,
      hint,
    );
  }
}

const addressRange = /^[0-9a-f:.]{2,45}\/(\d{1,3})$/i;

/** Warns of values that match something else than they say, and of the key they stand beside. */
export function adviseOnValue(fields: MapReader, key: string, value: string): void {
  const node = fields.given('value')?.node;
  if (node?.kind === 'null' && 'source' in node) {
    const shown = node.source === '' ? 'empty' : node.source;
    const meant = node.source === '' ? '' : `, else write it in quotes: '${node.source}'`;
    const message = `value is ${shown}, so any value matches`;
    fields.advise('null-value', 'value', message, `leave value out if that is meant${meant}`);
  }
  // The reference reads it as no value. Only a note: Envoy Gateway writes it where any value is meant.
  if (node?.kind === 'text' && value === '') {
    const hint = 'leave value out if that is meant; a rule for an empty value cannot be written';
    fields.advise('empty-value', 'value', 'value is an empty text, so any value matches', hint);
  }
  const [range, length] = addressRange.exec(value) ?? [];
  if (key === 'remote_address' && range !== undefined) {
    const version = value.includes(':') ? 'v6' : 'v4';
    const message = `a remote_address is one address, so the range '${range}' matches none`;
    const hint = `write 'masked_remote_address', and let Envoy send that with ${version}_prefix_mask_len: ${length}`;
    fields.advise('address-range', 'value', message, hint);
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
