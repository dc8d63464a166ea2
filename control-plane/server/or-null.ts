// A field of an answer that is always there, and null where it has no value.
import Type from 'typebox';

export const orNull = <Schema extends Type.TSchema>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);
