// Media types: reading the Content-Type of a body, and naming one for a file.

export interface MediaType {
  /** Lower case, without parameters. */
  readonly essence: string;
  /** Names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** The kinds of body that an application accepts; classes add XML. */
export const bodyKinds = ['json', 'form', 'multipart', 'text'] as const;

export type BodyKind = (typeof bodyKinds)[number];

/** Including types that are JSON by their suffix. */
export function isJson(essence: string): boolean {
  return essence === 'application/json' || essence.endsWith('+json');
}

/** Including types that are XML by their suffix. */
export function isXml(essence: string): boolean {
  return essence === 'application/xml' || essence === 'text/xml' || essence.endsWith('+xml');
}

/** A token of HTTP: a header name, or half of a media type. */
export const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

const json: MediaType = { essence: 'application/json', parameters: new Map() };

/** Undefined if the text is not a media type. */
export function parseMediaType(text: string): MediaType | undefined {
  if (text === json.essence) return json;
  const [type = '', ...rest] = splitOutsideQuotes(text, ';');
  const essence = type.trim().toLowerCase();
  const [main, sub, more] = essence.split('/');
  if (!token.test(main ?? '') || !token.test(sub ?? '') || more !== undefined) return undefined;
  const parameters = new Map<string, string>();
  for (const parameter of rest) {
    const at = parameter.indexOf('=');
    if (at < 0) continue;
    const name = parameter.slice(0, at).trim().toLowerCase();
    const value = parameter.slice(at + 1).trim();
    if (!parameters.has(name)) parameters.set(name, unquote(value));
  }
  return { essence, parameters };
}

/** A charset other than UTF-8 makes the type unsupported. */
export function kindOf({ essence, parameters }: MediaType): BodyKind | 'xml' | undefined {
  if (essence === 'multipart/form-data') return 'multipart';
  if (!isUtf8(parameters.get('charset'))) return undefined;
  if (isJson(essence)) return 'json';
  if (isXml(essence)) return 'xml';
  if (essence === 'application/x-www-form-urlencoded') return 'form';
  return essence === 'text/plain' ? 'text' : undefined;
}

/** Whether a text of this encoding is read as UTF-8, also if none is named. */
export function isUtf8(encoding = 'utf-8'): boolean {
  return /^(?:utf-?8|us-ascii)$/i.test(encoding);
}

/** Splits a header's value; a separator inside a quoted text does not count. */
export function splitOutsideQuotes(text: string, separator: ',' | ';'): string[] {
  const pieces: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (quoted && character === '\\') at += 1;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === separator) {
      pieces.push(text.slice(start, at));
      start = at + 1;
    }
  }
  pieces.push(text.slice(start));
  return pieces;
}

/** The entries of a header such as `Accept`, by name in lower case, with their weights. */
export function readWeights(header: string): readonly (readonly [name: string, weight: number])[] {
  return splitOutsideQuotes(header, ',').flatMap((entry) => {
    const [name = '', ...parameters] = splitOutsideQuotes(entry.toLowerCase(), ';');
    const weight = parameters.flatMap((text) => /^\s*q\s*=(.*)/.exec(text)?.[1] ?? [])[0] ?? '1';
    return [[name.trim(), Number(weight)] as const];
  });
}

const types =
  'text/css text/csv text/html application/json application/pdf application/xml application/yaml application/zip image/gif image/jpeg image/png image/webp';
const byExtension: ReadonlyMap<string, string> = new Map([
  ...types.split(' ').map((type) => [type.slice(type.indexOf('/') + 1), type] as const),
  ...Object.entries({ js: 'text/javascript', md: 'text/markdown', txt: 'text/plain' }),
  ...Object.entries({ jpg: 'image/jpeg', svg: 'image/svg+xml', yml: 'application/yaml' }),
]);

/** The media type of a file name or a bare extension; undefined if unknown. */
export function mediaTypeOfName(name: string): string | undefined {
  return byExtension.get(name.slice(name.lastIndexOf('.') + 1).toLowerCase());
}

function unquote(value: string): string {
  if (!value.startsWith('"') || !value.endsWith('"') || value.length < 2) return value;
  return value.slice(1, -1).replace(/\\(.)/g, '$1');
}
