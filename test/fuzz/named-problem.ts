// What a person may be told of bad input: a problem with a name, never the insides of the program.

/** Words of the language and its libraries; no sample of a fuzz test has them. */
const insides =
  /\b(?:TypeError|RangeError|ReferenceError|SyntaxError|Maximum call stack|Invalid (?:string|array) length|internal error|defect (?:in|of))|Cannot (?:read|set|convert|destructure|access)|is not (?:a function|iterable|a constructor|defined)|\[object |\bundefined\b|\bNaN\b(?! is not a finite)|\n\s+at .+:\d+:\d+/;

/** Throws when `text` is empty, or shows the insides of the program. */
export function checkNamedProblem(text: string): void {
  if (text.trim() === '') throw new Error('a problem without words');
  // What was sent may be quoted, whatever it is.
  const inside = insides.exec(text.replaceAll(/'[^'\n]*'|"[^"\n]*"/g, "''"));
  if (inside) throw new Error(`a problem that shows the insides: ${text.slice(0, 500)}`);
}
