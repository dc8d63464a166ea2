// Where controllers are: from the constructor (or the command line, which calls it), else the environment,
// else the folder `controllers`.

type Environment = Readonly<Record<string, string | undefined>>;

const numbered = /^ENDPOINTS_PREFIX_(\d+)$/;

/** Several prefixes merge, the later one wins; a source replaces those after it. */
export function choosePrefixes(
  given: string | readonly string[] | undefined,
  env: Environment,
): readonly string[] {
  // An empty one is ignored, as in the environment: as a path it would be the working directory.
  const named = [given ?? []].flat().filter((prefix) => prefix !== '');
  if (named.length > 0) return named;
  const fromEnvironment = readEnvironment(env);
  return fromEnvironment.length > 0 ? fromEnvironment : ['controllers'];
}

/** On Windows a colon behind one letter is that of a drive. */
export function splitPaths(text: string, platform: string = process.platform): readonly string[] {
  return text.split(platform === 'win32' ? /(?<!(?:^|[:;])[A-Za-z]):|;/ : ':');
}

/** `ENDPOINTS_PREFIX`, several joined by `:`, then `ENDPOINTS_PREFIX_1`, `_2`, ... by number. */
function readEnvironment(env: Environment): readonly string[] {
  const numbers = Object.keys(env)
    .filter((name) => numbered.test(name))
    .sort((a, b) => Number(numbered.exec(a)?.[1]) - Number(numbered.exec(b)?.[1]));
  return ['ENDPOINTS_PREFIX', ...numbers].flatMap((name) =>
    splitPaths(env[name] ?? '').filter((prefix) => prefix !== ''),
  );
}
