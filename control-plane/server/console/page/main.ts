import { html, render } from 'htm/preact';
import { App } from './app.ts';
import { applyTheme, readTheme } from './theme.ts';

applyTheme(readTheme());
const root = document.getElementById('app');
if (root !== null) render(html`<${App} />`, root);
