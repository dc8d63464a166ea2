// Parses the flags of the tests' programs; prints the usage with exit code 2 if they are wrong.

/** `read` returns undefined, or throws, if the usage should be printed. */
export function readFlags<Flags>(usage: string, read: () => Flags | undefined): Flags {
  try {
    const flags = read();
    if (flags !== undefined) return flags;
  } catch {
    // Unknown flags print the usage.
  }
  process.stderr.write(usage);
  process.exit(2);
}

/** A different one each time, unless it is given. */
export const toSeed = (given: string | undefined) =>
  Number(given ?? Math.floor(Math.random() * 1_000_000));
