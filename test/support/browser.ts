// A real browser for the tests of the console: Chromium without a window, with a look at every page for what
// people without a mouse or without sight would miss.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext, TestFn } from 'ava';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { findTool } from './installed-tool.ts';

export type { Locator, Page } from 'playwright-core';

const shotFolder = join(import.meta.dirname, '..', '..', 'test-output', 'console');
export const waitMs = 60_000;
const isCi = process.env['CI'] === 'true';
/** The first has nothing of a desktop, and costs half of the CPU time. */
const executable = findTool('chromium-headless-shell') ?? findTool('chromium');

/** A test that needs a browser. */
export function testWithBrowser<Test extends Pick<TestFn, 'skip'>>(
  test: Test,
): Test | TestFn['skip'] {
  return executable === undefined ? test.skip : test;
}

/** The themes differ in nothing but colours, so that each width is looked at in one of them, and the wide one in both. */
const views = [
  { theme: 'light', width: 1360, height: 900 },
  { theme: 'dark', width: 1360, height: 900 },
  { theme: 'light', width: 360, height: 780 },
] as const;

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page said that it should not say: errors, refusals of its policy. */
  readonly complaints: readonly string[];
  /** Addresses of all requests. */
  readonly requests: readonly string[];
}

/** Started when it is needed first; one for all tests of a file. */
let browser: Promise<Browser> | undefined;

/** A tab of its own, with nothing remembered; closed after the test. */
export async function openTab(t: ExecutionContext): Promise<Visit> {
  browser ??= chromium.launch({
    executablePath: executable ?? '',
    // Chromium's sandbox does not work for root, as which CI runs.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    timeout: waitMs,
  });
  const context = await (await browser).newContext();
  t.teardown(() => context.close());
  context.setDefaultTimeout(waitMs);
  const page = await context.newPage();
  const complaints: string[] = [];
  const requests: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('request', (request) => requests.push(request.url()));
  return { page, context, complaints, requests };
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
}

/** Returns what axe finds wrong in each view, and keeps a picture of each where there is somebody to
 * look at them. */
export async function look(page: Page, name: string): Promise<string[]> {
  if (!isCi) mkdirSync(shotFolder, { recursive: true });
  const found: string[] = [];
  for (const { theme, width, height } of views) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height });
    const view = `${name}-${theme}-${width}`;
    if (!isCi) await page.screenshot({ path: join(shotFolder, `${view}.png`) });
    found.push(...(await examine(page, theme)).map((text) => `${view}: ${text}`));
  }
  return found;
}

/** Texts, as the types of a browser are not those of the tests. */
const nameOfFocused = `(() => {
  const { activeElement: element } = document;
  return element?.getAttribute('aria-label') ?? (element?.labels?.[0] ?? element)?.textContent ?? '';
})()`;

async function examine(page: Page, theme: 'light' | 'dark'): Promise<string[]> {
  // Not as a script of the page, which its policy forbids.
  if (!(await page.evaluate(`'axe' in globalThis`))) await page.evaluate(axe.source);
  const run = theme === 'light' ? 'axe.run()' : `axe.run({ runOnly: ['color-contrast'] })`;
  const { violations } = await page.evaluate<axe.AxeResults>(run);
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html}`);
}

/** Presses Tab until what has the focus is called so; fails when the whole page was passed. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 150; presses++) {
    await page.keyboard.press('Tab');
    if ((await page.evaluate<string>(nameOfFocused)).trim() === name) return;
  }
  throw new Error(`the keyboard does not reach ${name}`);
}
