// YAML texts that are longer than their characters: with aliases, which copy what has an anchor.

const anchor = /(?:^|[\s,:[{])&\S/;

/** Whether there may be an anchor, of which each alias is a copy: with them 8 kB can have thousands of rules. */
export function mayHaveAnchor(text: string): boolean {
  return anchor.test(text);
}
