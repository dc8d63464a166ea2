// The format of an answer if its controller allows XML: chosen by the client's Accept header (behaviour: accept).

import { isJson, isXml, parseMediaType, readWeights } from '../request/media-type.ts';
import type { Around } from '../request/request.ts';

/** For answers that depend on the header, including refusals: a cache must not send them to clients with another
 * one. */
export const varyAccept: Around = async (next) => {
  const answer = await next();
  answer.headers.append('vary', 'Accept');
  return answer;
};

export type Format = 'json' | 'xml';

type Ranges = ReturnType<typeof readWeights>;

/** JSON if both are equally preferred or the header is missing; undefined if it accepts neither. */
export function chooseFormat(accept: string | null): Format | undefined {
  const ranges = readWeights(accept ?? '').filter(([range]) => parseMediaType(range));
  if (ranges.length === 0) return 'json';
  const json = weightOf('json', ranges);
  const xml = weightOf('xml', ranges);
  if (json >= xml && json > 0) return 'json';
  return xml > 0 ? 'xml' : undefined;
}

/** A more specific range takes precedence. */
function weightOf(format: Format, ranges: Ranges): number {
  const [best] = ranges
    .map(([essence, weight]) => ({ exactness: exactnessOf(essence, format), weight }))
    .sort((a, b) => b.exactness - a.exactness || b.weight - a.weight);
  return best === undefined || best.exactness === 0 ? 0 : best.weight;
}

function exactnessOf(essence: string, format: Format): 0 | 1 | 2 | 3 {
  if (essence === '*/*') return 1;
  if (essence === 'application/*') return 2;
  if (format === 'xml') return isXml(essence) ? 3 : essence === 'text/*' ? 2 : 0;
  return isJson(essence) ? 3 : 0;
}
