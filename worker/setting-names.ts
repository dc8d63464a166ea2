// The two families of setting names: where ours has a neutral word, the reference's has a product's name (behaviour:
// two-names). Both are read; the neutral one is first in documents.
import type { SettingNames } from '../shared/settings/setting.ts';

const productWords: readonly (readonly [neutral: string, established: string])[] = [
  ['KVSTORE', 'REDIS'],
  ['MEMSTORE', 'MEMCACHE'],
  ['PUSHMETRICS', 'STATSD'],
  ['TAGGEDMETRICS', 'DOG_STATSD'],
  ['TAGGED', 'DOG_STATSD'],
  ['PULLMETRICS', 'PROMETHEUS'],
  ['CLOUDIAM', 'AWS_IAM'],
];

/** All names of a setting: the neutral ones, and their counterparts that name a product. */
export function bothNames(first: string, ...more: readonly string[]): SettingNames {
  const neutral = [first, ...more];
  const all = new Set([...neutral, ...neutral.map(toEstablished)]);
  all.delete(first);
  return [first, ...all];
}

/** Further names that have a product's name in some positions and a neutral word in others: the mapping is per word. */
export function mixedNames(neutral: string): readonly string[] {
  const all = productWords.reduce(
    (names, pair) => names.flatMap((name) => [name, nameProduct(name, pair)]),
    [neutral],
  );
  const pure = bothNames(neutral);
  return [...new Set(all)].filter((name) => !pure.includes(name));
}

/** Part of the worker's settings. */
export interface GivenNames {
  /** The name by which each setting was given, by its first name. */
  readonly givenNames: Readonly<Record<string, string>>;
}

/** The name of a setting in texts: the one by which it was given, or else its first. */
export function givenName({ givenNames }: GivenNames, first: string): string {
  return givenNames[first] ?? first;
}

/** The counterpart of a neutral name that names a product. */
export function toEstablished(neutral: string): string {
  return productWords.reduce(nameProduct, neutral);
}

function nameProduct(name: string, [word, product]: (typeof productWords)[number]): string {
  return name.replace(new RegExp(`(?<=^|_)${word}(?=_|$)`), product);
}
