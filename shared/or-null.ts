// A field of an answer that is always there, and null where there is nothing to say.
import Type from 'typebox';

export const orNull = <Schema extends Type.TSchema>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);
