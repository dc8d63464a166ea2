// The JSON Schema of a rules document, for editors, made from the rows of rule-keys.ts. It finds less than
// `check`, which also compares keys and files.
import { type Place, type RuleKey, ruleKeys } from './rule-keys.ts';

export type JsonSchema = { readonly [keyword: string]: unknown };

const nestedPlaces = ['descriptor', 'rate_limit', 'replaces', 'lease'] as const;

/** Draft 7, which every editor reads. */
export function createRuleSchema(): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Rate limit rules of one domain',
    ...describePlace('document'),
    definitions: Object.fromEntries(nestedPlaces.map((place) => [place, describePlace(place)])),
  };
}

function describePlace(place: Place): JsonSchema {
  const rows: readonly RuleKey[] = ruleKeys;
  const here = rows.filter(({ places }) => (places as readonly Place[]).includes(place));
  const required = here.filter((row) => row.type === 'text' && row.isRequired);
  return {
    type: 'object',
    additionalProperties: false,
    ...(required.length > 0 && { required: required.map(({ name }) => name) }),
    properties: Object.fromEntries(
      here.map((row: RuleKey) => [
        row.name,
        { description: describeMeaning(row), ...describeValue(row) },
      ]),
    ),
    ...(place === 'rate_limit' && {
      if: { required: ['unlimited'], properties: { unlimited: { const: true } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { not: { required: ['unit'] } },
      else: {
        required: ['unit', 'requests_per_unit'],
        properties: { unit: { not: { enum: [null, ''] } }, requests_per_unit: { type: 'integer' } },
      },
    }),
  };
}

function describeMeaning({ meaning }: RuleKey): string {
  return meaning.replaceAll('`', '');
}

/** A key without a value counts as absent. */
function describeValue(row: RuleKey): JsonSchema {
  switch (row.type) {
    case 'text':
      if (row.words) return describeWords(row.words);
      // Numbers and booleans are taken as the text they are written with.
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
        type: ['array', 'null'],
        items: { $ref: refOf(row.holds) },
        ...(row.items && { minItems: row.items[0], maxItems: row.items[1] }),
      };
    case 'data':
      return { type: ['object', 'null'] };
  }
}

/** The words are suggested; other letter cases are accepted as well. */
function describeWords(words: readonly string[]): JsonSchema {
  const anyCase = words.map((word) =>
    [...word].map((letter) => `[${letter}${letter.toUpperCase()}]`).join(''),
  );
  const pattern = `^(${anyCase.join('|')})?$`;
  return { anyOf: [{ enum: words }, { type: 'string', pattern }, { type: 'null' }] };
}

function refOf(place: Place): string {
  return `#/definitions/${place}`;
}
