// The flags of a program of the tests: what it was given, or its usage and exit code 2.

/** `read` gives undefined, or throws, where the usage is to be shown. */
export function readFlags<Flags>(usage: string, read: () => Flags | undefined): Flags {
  try {
    const flags = read();
    if (flags !== undefined) return flags;
  } catch {
    // What it does not know is answered by the usage.
  }
  process.stderr.write(usage);
  process.exit(2);
}

/** Another one each time, unless it is given. */
export const toSeed = (given: string | undefined) =>
  Number(given ?? Math.floor(Math.random() * 1_000_000));
