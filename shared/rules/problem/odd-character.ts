// Finds characters that look like others: typographic quotes, special spaces, invisible characters, and letters
// of other alphabets that look like Latin ones.
import { toExcerpt } from '../../text-excerpt.ts';

export interface OddCharacter {
  /** The index of the character in UTF-16 code units. */
  readonly index: number;
  /** A description such as `a no-break space (U+00A0)`. */
  readonly description: string;
  /** The character most likely meant; '' to remove it. */
  readonly replacement: string;
}

/** Letters of other alphabets, each at the index of its Latin likeness in `latinLetters`. */
const otherLetters = 'аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅοαινυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ';
const latinLetters = 'aeopcyxijshdqwABEKMHOPCTYXIJSoaivuABEZHIKMNOPTYX';
const lookAlikes = new Map([...otherLetters].map((letter, at) => [letter, latinLetters[at] ?? '']));

const plainText = /^[\t -~]*$/;
/** Within a text they may be intended, as in a name. */
const outerQuote = /^[‘’‚‛“”„‟‹›«»＂＇]|[‘’‚‛“”„‟‹›«»＂＇]$/u;
const space = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/u;
const invisible =
  /[^\P{Cc}\t\n\r]|[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/u;
/** They join letters and signs of other scripts, and have no effect beside Latin ones. */
const joinerOfLatin = /(?:^|(?<=[ -~]))[\u200c\u200d]|[\u200c\u200d](?=[ -~]|$)/u;
const mixedWord = /[\p{L}\p{M}]+/gu;

/** The first odd character of `text`; undefined when there is none. */
export function findOddCharacter(text: string): OddCharacter | undefined {
  if (plainText.test(text)) return undefined;
  const found = [
    find(text, outerQuote, (sign) => `the quotation mark ${sign} (${toCode(sign)})`),
    find(text, space, describeSpace, ' '),
    find(text, invisible, (sign) => `an invisible character (${toCode(sign)})`),
    find(text, joinerOfLatin, (sign) => `an invisible character (${toCode(sign)})`),
    findLookAlike(text),
  ].filter((odd) => odd !== undefined);
  return found.sort((a, b) => a.index - b.index)[0];
}

/** Longer texts are not examined: they are hardly misspelled words, and would cost time. */
const maxRepaired = 200;

/** The text most likely meant, without spaces at its ends. */
export function withoutOddCharacters(text: string): string {
  let plain = text;
  if (text.length > maxRepaired) return text;
  for (let odd = findOddCharacter(plain); odd !== undefined; odd = findOddCharacter(plain)) {
    plain = plain.slice(0, odd.index) + odd.replacement + plain.slice(odd.index + 1);
  }
  return plain.trim();
}

/** The hint for a word that looks like `meant`; undefined when it contains no odd character. */
export function describeRepairedWord(word: string, meant: string | undefined): string | undefined {
  const odd = findOddCharacter(word);
  if (odd === undefined) return undefined;
  return `it has ${odd.description}: write '${meant ?? toExcerpt(withoutOddCharacters(word))}'`;
}

function find(
  text: string,
  pattern: RegExp,
  describe: (sign: string) => string,
  replacement = '',
): OddCharacter | undefined {
  const match = pattern.exec(text);
  return match ? { index: match.index, description: describe(match[0]), replacement } : undefined;
}

function describeSpace(sign: string): string {
  return sign === '\u00a0' ? 'a no-break space (U+00A0)' : `an unusual space (${toCode(sign)})`;
}

/** Searches only words with Latin letters: a word entirely in another alphabet is intended. */
function findLookAlike(text: string): OddCharacter | undefined {
  for (const { 0: letters, index } of text.matchAll(mixedWord)) {
    if (!/[A-Za-z]/.test(letters)) continue;
    for (let at = 0; at < letters.length; at++) {
      const letter = letters.charAt(at);
      const latin = lookAlikes.get(letter);
      if (latin === undefined) continue;
      const alphabet = letter < '\u0400' ? 'Greek' : 'Cyrillic';
      const description = `the ${alphabet} letter '${letter}' (${toCode(letter)}), which looks like the Latin '${latin}'`;
      return { index: index + at, description, replacement: latin };
    }
  }
  return undefined;
}

function toCode(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
