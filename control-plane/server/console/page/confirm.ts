// A dialog that describes an action, asks for the reason, and shows the result; and the underlying dialog.
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Answer } from './api.ts';
import { Field, Notice } from './parts.ts';
import { Problems } from './problems.ts';

interface DialogProps {
  /** Its heading must have the id `dialog-title`. */
  readonly children?: ComponentChildren;
  /** Called when Escape is pressed. */
  onCancel(): void;
}

/** Covers everything else, which cannot be reached while it is open. */
export function Dialog({ children, onCancel }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);
  return html`<dialog ref=${dialog} aria-labelledby="dialog-title" onCancel=${onCancel}>${children}</dialog>`;
}

interface ConfirmProps {
  readonly title: string;
  readonly action: string;
  readonly isDangerous?: boolean;
  /** Describes the action. */
  readonly children?: ComponentChildren;
  /** Performs the action, with the reason for the audit log. */
  act(reason: string): Promise<Answer<unknown>>;
  /** `done`: whether the action was performed. */
  onClose(done: boolean): void;
}

export function Confirm({ title, action, isDangerous, children, act, onClose }: ConfirmProps) {
  const [reason, setReason] = useState('');
  const [isActing, setActing] = useState(false);
  const [problem, setProblem] = useState<Answer<unknown> | undefined>(undefined);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (isActing || reason.trim() === '') return;
    setActing(true);
    const answer = await act(reason.trim());
    setActing(false);
    if (answer.ok) onClose(true);
    else setProblem(answer);
  }

  const closed = () => onClose(false);
  return html`<${Dialog} onCancel=${closed}>
    <form onSubmit=${submit}>
      <h2 id="dialog-title">${title}</h2>
      <div class="what">${children}</div>
      <${Field} label="Reason, for the audit log">
        <input name="reason" required maxlength="1000" autocomplete="off" value=${reason}
          onInput=${(event: InputEvent) => setReason((event.target as HTMLInputElement).value)} />
      <//>
      ${
        problem !== undefined &&
        !problem.ok &&
        html`<div role="alert"><${Notice} tone="bad"><strong>Not done: ${problem.text}.</strong>
          ${problem.problems.length > 0 && html`<${Problems} problems=${problem.problems} revision=${undefined} />`}<//></div>`
      }
      <div class="buttons">
        <button type="button" onClick=${closed}>Cancel</button>
        <button type="submit" class=${isDangerous ? 'dangerous' : 'main'} disabled=${isActing}>
          ${isActing ? 'Working…' : action}</button>
      </div>
    </form>
  <//>`;
}
