// Checks messages about bad input: each names the problem, and none exposes internals of the program.

/** Terms of the language and its libraries; no sample of a fuzz test contains them. */
const insides =
  /\b(?:TypeError|RangeError|ReferenceError|SyntaxError|Maximum call stack|Invalid (?:string|array) length|internal error|defect (?:in|of))|Cannot (?:read|set|convert|destructure|access)|is not (?:a function|iterable|a constructor|defined)|\[object |\bundefined\b|\bNaN\b(?! is not a finite)|\n\s+at .+:\d+:\d+/;

/** Throws when `text` is empty, or exposes internals of the program. */
export function checkNamedProblem(text: string): void {
  if (text.trim() === '') throw new Error('a problem without words');
  // The input may be quoted, whatever it is.
  const inside = insides.exec(text.replaceAll(/'[^'\n]*'|"[^"\n]*"/g, "''"));
  if (inside) throw new Error(`a problem that shows the insides: ${text.slice(0, 500)}`);
}
