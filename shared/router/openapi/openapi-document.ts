/** Plain JSON, of the shape that OpenAPI gives it. */
export type OpenApiDocument = { readonly [name: string]: unknown };
