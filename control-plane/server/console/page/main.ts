import { html, render } from 'htm/preact';
import { App } from './app.ts';
import { applyTheme, readTheme } from './theme.ts';

applyTheme(readTheme());
const place = document.getElementById('app');
if (place !== null) render(html`<${App} />`, place);
