// A real browser for the tests of the console: headless Chromium, with an accessibility check of every page.
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
/** The first has no desktop integration, and takes half of the CPU time. */
const executable = findTool('chromium-headless-shell') ?? findTool('chromium');

/** A test that needs a browser. */
export function testWithBrowser<Test extends Pick<TestFn, 'skip'>>(
  test: Test,
): Test | TestFn['skip'] {
  return executable === undefined ? test.skip : test;
}

/** The themes differ only in colours, so that each width is checked in one of them, and the wide one in both. */
const views = [
  { theme: 'light', width: 1360, height: 900 },
  { theme: 'dark', width: 1360, height: 900 },
  { theme: 'light', width: 360, height: 780 },
] as const;

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Unwanted messages of the page: errors, violations of its policy. */
  readonly complaints: readonly string[];
  /** Addresses of all requests. */
  readonly requests: readonly string[];
}

/** Started on first use; one for all tests of a file. */
let browser: Promise<Browser> | undefined;

/** A separate tab without stored data; closed after the test. */
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

/** Returns the problems that axe finds in each view, and saves a picture of each unless it runs in CI. */
export async function observe(page: Page, name: string): Promise<string[]> {
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

/** As texts, since a browser's types are not available in tests. */
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

/** Presses Tab until the focused element has this name; fails after a whole round. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 150; presses++) {
    await page.keyboard.press('Tab');
    if ((await page.evaluate<string>(nameOfFocused)).trim() === name) return;
  }
  throw new Error(`the keyboard does not reach ${name}`);
}
