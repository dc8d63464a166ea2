// Parses the files of successive revisions, each text only once.
import { type ParsedDocument, parseRuleDocument } from '../../shared/rules/document/document.ts';

type Parse = (text: string, path: string) => ParsedDocument;

interface Remembered {
  readonly text: string;
  readonly parsed: ParsedDocument;
}

/** Each call is for the files of the next revision. Texts that the previous one did not have are forgotten. */
export function createRememberingParser(): () => Parse {
  let before = new Map<string, Remembered>();
  return () => {
    const known = before;
    const now = new Map<string, Remembered>();
    before = now;
    return (text, path) => {
      const found = known.get(path);
      const remembered =
        found?.text === text ? found : { text, parsed: parseRuleDocument(text, path) };
      now.set(path, remembered);
      return remembered.parsed;
    };
  };
}
