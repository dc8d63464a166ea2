// For fastify servers whose routes have no schema: the compilers of schemas, which are half of fastify's memory, are not
// loaded.

/** The option `schemaController`. */
export const noSchemas = { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } };

function refuse(): never {
  throw new Error('routes of this server have no schemas');
}
