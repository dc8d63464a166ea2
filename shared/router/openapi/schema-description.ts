// A schema for descriptions: plain JSON Schema 2020-12, without this package's own keywords.
import type Type from 'typebox';
import { uploadKeyword } from '../upload.ts';

/** A copy; booleans stay. */
export function toDescribedSchema(schema: Type.TSchema | boolean): unknown {
  return describe(JSON.parse(JSON.stringify(schema)));
}

function describe(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(describe);
  if (typeof value !== 'object' || value === null) return value;
  const described: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    if (key === uploadKeyword) continue;
    // A tuple, in the older drafts' way.
    if (key === 'items' && Array.isArray(inner)) described['prefixItems'] = describe(inner);
    else if (key === 'additionalItems') described['items'] = describe(inner);
    else described[key] = describe(inner);
  }
  return described;
}
