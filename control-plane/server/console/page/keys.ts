// The keyboard shortcuts of the pages, as listed by `?`.
import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { Dialog } from './confirm.ts';

const keys = [
  [['/', 'Ctrl K'], 'Find a value, rule, domain, worker or revision'],
  [['↑', '↓'], 'Move through the results'],
  [['Enter'], 'Open the first result, or the focused one'],
  [['?'], 'List the keys'],
  [['Esc'], 'Close a dialog'],
] as const;

export function KeysButton() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = ({ key, target }: KeyboardEvent) => {
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select');
      if (key === '?' && !isTyping && document.querySelector('dialog[open]') === null)
        setOpen(true);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  const close = () => setOpen(false);
  return html`<button type="button" class="link" aria-keyshortcuts="?" onClick=${() => setOpen(true)}>Keys <kbd aria-hidden="true">?</kbd></button>
    ${
      isOpen &&
      html`<${Dialog} onCancel=${close}><h2 id="dialog-title">Keys</h2>
        <dl class="keys">${keys.map(
          ([names, text]) =>
            html`<dt>${names.map((name) => html`<kbd>${name}</kbd> `)}</dt><dd>${text}</dd>`,
        )}</dl>
        <div class="buttons"><button type="button" autofocus onClick=${close}>Close</button></div><//>`
    }`;
}
