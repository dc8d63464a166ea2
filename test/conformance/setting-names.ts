// The two families of setting names. Cases are written in the established one; this rewrites them to
// the neutral one (behaviour: two-names).

const prefixes: readonly (readonly [established: string, neutral: string])[] = [
  ['DOG_STATSD_MOGRIFIERS', 'TAGGED_MOGRIFIERS'],
  ['DOG_STATSD_MOGRIFIER_', 'TAGGED_MOGRIFIER_'],
  ['USE_DOG_STATSD_MOGRIFIERS', 'TAGGED_MOGRIFIERS'],
  ['USE_DOG_STATSD', 'USE_TAGGEDMETRICS'],
  ['USE_STATSD', 'USE_PUSHMETRICS'],
  ['STATSD_', 'PUSHMETRICS_'],
  ['USE_PROMETHEUS', 'USE_PULLMETRICS'],
  ['PROMETHEUS_', 'PULLMETRICS_'],
  ['REDIS', 'KVSTORE'],
  ['MEMCACHE', 'MEMSTORE'],
  ['LOCAL_CACHE_SIZE_IN_BYTES', 'LocalCacheSizeInBytes'],
];

const backendTypes: Readonly<Record<string, string>> = { memcache: 'memstore', redis: 'kvstore' };

export type NameFamily = 'established' | 'neutral';

/** Whether some setting has another name or value in the neutral family. */
export function hasNeutralNames(env: Readonly<Record<string, string | null>>): boolean {
  const settings = Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== null),
  );
  const neutral = toNeutralSettings(settings);
  return Object.entries(settings).some(([name, value]) => neutral[name] !== value);
}

export function toNeutralSettings(env: Readonly<Record<string, string>>): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    const rule = prefixes.find(([established]) => name.startsWith(established));
    const neutral = rule === undefined ? name : rule[1] + name.slice(rule[0].length);
    out[neutral] = name === 'BACKEND_TYPE' ? (backendTypes[value] ?? value) : value;
  }
  return out;
}
