// The fenced code blocks of a Markdown text, in order.

export interface FencedBlock {
  /** The text after the opening fence, such as `sh`. */
  readonly language: string;
  /** Each line includes its line break. */
  readonly text: string;
  /** The number of its first line in the document, from 1. */
  readonly line: number;
}

export function findFencedBlocks(markdown: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let open: { language: string; text: string; line: number } | undefined;
  for (const [index, line] of markdown.split('\n').entries()) {
    if (!line.startsWith('```')) {
      if (open !== undefined) open.text += `${line}\n`;
    } else if (open === undefined) {
      open = { language: line.slice(3).trim(), text: '', line: index + 2 };
    } else {
      blocks.push(open);
      open = undefined;
    }
  }
  if (open !== undefined) throw new Error(`the block at line ${open.line} is not closed`);
  return blocks;
}
