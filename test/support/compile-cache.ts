// For programs that a test starts with an environment of their own: what the scripts of package.json give them
// too, where the run of the tests has it. A start costs half of the CPU time with it.
const { NODE_COMPILE_CACHE } = process.env;

export const compileCache: Readonly<Record<string, string>> =
  NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
