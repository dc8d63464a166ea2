// Asks for the token. It is stored only in this tab, and is never part of an address.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { storeToken } from './api.ts';
import { Field, Notice } from './parts.ts';

interface LoginProps {
  /** Tries the token. */
  enter(): Promise<void>;
  /** Whether the stored token was refused. */
  readonly wrong: boolean;
}

export function Login({ enter, wrong }: LoginProps) {
  const [token, setToken] = useState('');
  function submit(event: Event): void {
    event.preventDefault();
    storeToken(token.trim());
    setToken('');
    void enter();
  }
  return html`<main class="alone">
    <h1><img src="page/icon.svg" alt="" width="34" height="34" /> Ratelane</h1>
    <form onSubmit=${submit}>
      <${Field} label="Token of the admin API">
        <input type="password" required autocomplete="off" spellcheck=${false} value=${token}
          onInput=${(event: InputEvent) => setToken((event.target as HTMLInputElement).value)} />
      <//>
      ${
        wrong &&
        html`<div role="alert"><${Notice} tone="bad"><strong>Unknown token.</strong>${' '}
        Use one from the file of --admin-tokens-file, with the scope read or write.<//></div>`
      }
      <div class="buttons"><button type="submit" class="main">Sign in</button></div>
    </form>
    <p class="quiet">The token stays in this tab, and is forgotten when the tab is closed.</p>
  </main>`;
}
