// Light, dark, or the system's theme; stored in this browser.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';

const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];

/** In text style, even if there are emoji for these characters. */
const signs: Readonly<Record<Theme, string>> = {
  system: '\u25d0\ufe0e',
  light: '\u2600\ufe0e',
  dark: '\u263e\ufe0e',
};
const names: Readonly<Record<Theme, string>> = {
  system: 'As the system',
  light: 'Light',
  dark: 'Dark',
};

const key = 'ratelane.theme';

export function readTheme(): Theme {
  const stored = localStorage.getItem(key);
  return themes.find((theme) => theme === stored) ?? 'system';
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

export function ThemeSwitch() {
  const [theme, setTheme] = useState(readTheme());
  function choose(next: Theme): void {
    localStorage.setItem(key, next);
    applyTheme(next);
    setTheme(next);
  }
  return html`<fieldset class="switch">
    <legend class="unseen">Colours</legend>
    ${themes.map(
      (each) => html`<label title=${names[each]}>
        <input type="radio" name="theme" checked=${each === theme} onChange=${() => choose(each)} />
        <span aria-hidden="true">${signs[each]}</span><span class="unseen">${names[each]}</span>
      </label>`,
    )}
  </fieldset>`;
}
