// A text editor with line numbers, which are those of the text's file.
import { html } from 'htm/preact';

interface EditorProps {
  readonly label: string;
  readonly text: string;
  readonly firstLine: number;
  onInput(text: string): void;
}

export function Editor({ label, text, firstLine, onInput }: EditorProps) {
  const count = Math.max(4, text.split('\n').length);
  const numbers = Array.from({ length: count }, (_, index) => firstLine + index).join('\n');
  return html`<div class="editor">
    <pre aria-hidden="true">${numbers}</pre>
    <textarea aria-label=${label} rows=${count} wrap="off" spellcheck="false" autocapitalize="off" autocomplete="off" value=${text}
      onInput=${(event: InputEvent) => onInput((event.target as HTMLTextAreaElement).value)}></textarea>
  </div>`;
}
