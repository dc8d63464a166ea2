// Detects YAML texts that represent more than their characters: aliases copy what has an anchor.

const anchor = /(?:^|[\s,:[{])&\S/;

/** Whether the text may have an anchor, which each alias copies: with aliases, 8 kB can contain thousands of rules. */
export function mayHaveAnchor(text: string): boolean {
  return anchor.test(text);
}
