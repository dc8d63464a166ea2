// Checks the size limits of XML before it is parsed, since the parser builds a tree of the complete text and recurses
// for each level. Makes one pass over the text, exact up to the first malformed position, which the parser refuses.
import { BadRequest } from '../errors.ts';
import type { Limits } from '../limits.ts';

const sections = [
  { begin: '<!--', end: '-->' },
  { begin: '<![CDATA[', end: ']]>' },
  { begin: '<?', end: '?>' },
] as const;

/** Throws 400, also for a document type declaration, which could define entities. */
export function refuseXmlSize(
  text: string,
  { jsonDepth, xmlNodes }: Pick<Limits, 'jsonDepth' | 'xmlNodes'>,
): void {
  let depth = 0;
  let nodes = 0;
  let at = text.indexOf('<');
  while (at >= 0) {
    let end = at + 1;
    if (text[end] === '/') {
      depth -= 1;
    } else if (text[end] === '!' || text[end] === '?') {
      nodes += 1;
      end = endOfSection(text, at);
    } else {
      const tag = readTag(text, end);
      nodes += 1 + tag.attributes;
      end = tag.end;
      depth += 1;
      if (depth > jsonDepth) throw new BadRequest(`the body is nested deeper than ${jsonDepth}`);
      if (text[end - 1] === '/') depth -= 1;
    }
    if (nodes > xmlNodes) {
      throw new BadRequest(`the body has more than ${xmlNodes} elements and attributes`);
    }
    at = text.indexOf('<', end);
  }
}

/** Returns the end of the text if the terminator is missing. */
function endOfSection(text: string, at: number): number {
  const section = sections.find(({ begin }) => text.startsWith(begin, at));
  if (section === undefined) {
    throw new BadRequest('the body has a declaration (<!...>), which is not allowed');
  }
  const end = text.indexOf(section.end, at + section.begin.length);
  return end < 0 ? text.length : end;
}

/** Reads to the `>` of the start tag, or to the end of the text. */
function readTag(
  text: string,
  start: number,
): { readonly end: number; readonly attributes: number } {
  let attributes = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === '>') return { end: at, attributes };
    if (character !== '"' && character !== "'") continue;
    attributes += 1;
    at = text.indexOf(character, at + 1);
    if (at < 0) break;
  }
  return { end: text.length, attributes };
}
