// The shape of values in answers of the admin API: null where there is no value, and times as texts.
import Type from 'typebox';

export const orNull = <Schema extends Type.TSchema>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);

export const time = Type.String({ format: 'date-time' });

/** The end of the year 9999. */
const lastMs = 253_402_300_799_999;

/** A commit, or a record, can be of any time: one that cannot be shown becomes the next that can. */
export function toTime(wallMs: number): string {
  return new Date(Math.max(0, Math.min(wallMs, lastMs))).toISOString();
}

type Nulls<Fields> = {
  [Name in keyof Fields]: undefined extends Fields[Name]
    ? Exclude<Fields[Name], undefined> | null
    : Fields[Name];
};

/** The fields, with null in place of undefined. */
export function toNulls<Fields extends object>(fields: Fields): Nulls<Fields> {
  const entries = Object.entries(fields).map(([name, value]) => [name, value ?? null]);
  return Object.fromEntries(entries) as Nulls<Fields>;
}
