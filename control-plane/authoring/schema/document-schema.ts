// Generates the JSON Schema of a kind of documents, for editors, from the rows of its keys.

export type JsonSchema = { readonly [keyword: string]: unknown };

/** The part of a row that describes the value of its key. */
type SchemaValue<Section extends string> =
  | {
      readonly type: 'text';
      /** The only words allowed, in any letter case; without it, any text. */
      readonly words?: readonly string[];
      /** A regular expression that each text must match; numbers and booleans never match. */
      readonly pattern?: string;
    }
  /** A whole number. */
  | { readonly type: 'count'; readonly min: number; readonly max: number }
  | { readonly type: 'flag' | 'limit_flag' }
  /** A mapping, or a list of mappings, with keys of the section `holds`. */
  | {
      readonly type: 'map' | 'list';
      readonly holds: Section;
      /** The bounds of a list that is given. */
      readonly items?: readonly [least: number, most: number];
    }
  /** A mapping of anything. */
  | { readonly type: 'data' }
  /** Any other schema. */
  | { readonly type: 'other'; readonly schema: JsonSchema };

/** A key that mappings of some sections can have. */
export type SchemaRow<Section extends string> = SchemaValue<Section> & {
  readonly name: string;
  readonly sections: readonly Section[];
  /** May contain names in backquotes. */
  readonly meaning: string;
  readonly isRequired?: boolean;
};

export interface DocumentKind<Section extends string> {
  readonly title: string;
  readonly rows: readonly SchemaRow<Section>[];
  readonly root: Section;
  /** Keywords for the mappings of a section beyond those from the rows. */
  readonly refine?: (section: Section) => JsonSchema;
}

export interface DocumentKeys<Section extends string> {
  /** The keys of a section, in the order of the rows. */
  keysAt(section: Section): readonly string[];
  /** The text of the schema file. */
  formatSchema(): string;
}

/** Derives from the rows of a kind of documents the names that its reader accepts, and its schema. */
export function createDocumentKeys<Section extends string>(
  kind: DocumentKind<Section>,
): DocumentKeys<Section> {
  return {
    keysAt: (section) =>
      kind.rows.filter(({ sections }) => sections.includes(section)).map(({ name }) => name),
    formatSchema: () => `${JSON.stringify(createDocumentSchema(kind), undefined, 2)}\n`,
  };
}

/** Draft 7, which every editor reads. */
function createDocumentSchema<Section extends string>(kind: DocumentKind<Section>): JsonSchema {
  const sections = new Set(kind.rows.flatMap((row) => ('holds' in row ? [row.holds] : [])));
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: kind.title,
    ...describeSection(kind, kind.root),
    definitions: Object.fromEntries(
      [...sections].map((section) => [section, describeSection(kind, section)]),
    ),
  };
}

function describeSection<Section extends string>(
  { rows, refine }: DocumentKind<Section>,
  section: Section,
): JsonSchema {
  const here = rows.filter(({ sections }) => sections.includes(section));
  const required = here.filter(({ isRequired }) => isRequired);
  return {
    type: 'object',
    additionalProperties: false,
    ...(required.length > 0 && { required: required.map(({ name }) => name) }),
    properties: Object.fromEntries(
      here.map((row) => [
        row.name,
        { description: row.meaning.replaceAll('`', ''), ...describeValue(row) },
      ]),
    ),
    ...refine?.(section),
  };
}

/** A key without a value counts as absent. */
function describeValue<Section extends string>(row: SchemaRow<Section>): JsonSchema {
  switch (row.type) {
    case 'text':
      if (row.words) return describeWords(row.words);
      // Numbers and booleans are accepted as text, in the notation of the file.
      return row.pattern
        ? { type: 'string', pattern: row.pattern }
        : {
            type: ['string', 'integer', 'boolean', ...(row.isRequired ? [] : ['null'])],
            ...(row.isRequired && { minLength: 1 }),
          };
    case 'count':
      return { type: ['integer', 'null'], minimum: row.min, maximum: row.max };
    case 'flag':
    case 'limit_flag':
      return { type: ['boolean', 'null'] };
    case 'map':
      // Beside a $ref all other keywords are ignored, even the description.
      return { anyOf: [{ $ref: refOf(row.holds) }, { type: 'null' }] };
    case 'list':
      return {
        type: row.isRequired ? 'array' : ['array', 'null'],
        items: { $ref: refOf(row.holds) },
        ...(row.items && { minItems: row.items[0], maxItems: row.items[1] }),
      };
    case 'data':
      return { type: ['object', 'null'] };
    case 'other':
      return row.schema;
  }
}

/** Suggests the words; other letter cases are accepted as well. */
function describeWords(words: readonly string[]): JsonSchema {
  const anyCase = words.map((word) =>
    [...word].map((letter) => `[${letter}${letter.toUpperCase()}]`).join(''),
  );
  const pattern = `^(${anyCase.join('|')})?$`;
  return { anyOf: [{ enum: words }, { type: 'string', pattern }, { type: 'null' }] };
}

function refOf(section: string): string {
  return `#/definitions/${section}`;
}
