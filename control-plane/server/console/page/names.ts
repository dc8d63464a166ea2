// Shows names of rules, values, workers and revisions in the same way on all pages: with a link to their page, and a
// button to copy ids.
import { html } from 'htm/preact';
import { useContext, useState } from 'preact/hooks';
import { type Pair, toLines, toPairs, toShortId, toShown } from './format.ts';
import { hrefOf } from './route.ts';
import { SessionContext } from './session.ts';
import { toSourceUrl } from './source-url.ts';

export function RevisionName({ id }: { readonly id: string }) {
  const short = toShortId(id);
  return html`<span class="id"><a href=${hrefOf('revisions', { open: short })}><code>${short}</code></a><${Copy} text=${id} /></span>`;
}

/** Shows a rule by its name or its metric key; both begin with its domain. */
export function RuleName({ rule }: { readonly rule: string }) {
  return html`<a class="source" href=${hrefOf('rule', { rule })}>${toShown(rule)}</a>`;
}

interface ValueNameProps {
  readonly domain: string;
  readonly entries: readonly Pair[];
}

/** Links to the page on why the value is limited. */
export function ValueName({ domain, entries }: ValueNameProps) {
  return html`<a class="name" href=${hrefOf('why', { domain, descriptor: toLines(entries) })}>${toPairs(entries)}</a>`;
}

export function DomainName({ domain }: { readonly domain: string }) {
  return html`<a href=${hrefOf('rules', { domain })}>${toShown(domain)}</a>`;
}

interface WorkerNameProps {
  readonly name: string;
}

export function WorkerName({ name }: WorkerNameProps) {
  return html`<span class="id"><a class="name" href=${hrefOf('worker', { name })}>${toShown(name)}</a><${Copy} text=${name} /></span>`;
}

interface SourceProps {
  readonly file: string;
  readonly line: number | null;
  readonly column?: number | null;
  /** The revision with this text of the file; undefined if no revision contains the text. */
  readonly revision: string | undefined;
  /** Whether the file's name begins with the folder of the rules, as in problems. */
  readonly hasFolder?: boolean;
}

/** `shop.yaml:12`; a link if the address of the files is known. */
export function Source({ file, line, column, revision, hasFolder = false }: SourceProps) {
  const { sourceUrl, folder } = useContext(SessionContext);
  const text = `${toShown(file)}${line === null ? '' : `:${line}`}${column == null ? '' : `:${column}`}`;
  if (sourceUrl === null || revision === undefined) return text;
  const inFolder = hasFolder && file.startsWith(folder) ? file.slice(folder.length) : file;
  return html`<a class="source" href=${toSourceUrl(sourceUrl, { file: inFolder, line, revision })} rel="noreferrer">${text}</a>`;
}

/** A foreign text in which positions of rules are links to their source. */
export function SourceText({
  text,
  revision,
}: {
  readonly text: string;
  readonly revision: string | undefined;
}) {
  const [, file = text, line] = /^(.*):(\d+)$/.exec(text) ?? [];
  return html`<${Source} file=${file} line=${line === undefined ? null : Number(line)} revision=${revision} />`;
}

function Copy({ text }: { readonly text: string }) {
  const [isDone, setDone] = useState(false);
  async function copy(): Promise<void> {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  }
  return html`<button type="button" class=${isDone ? 'copy done' : 'copy'} aria-label=${`Copy ${text}`} title="Copy"
    onClick=${() => void copy()}></button>`;
}

/** Without TLS, browsers offer pages no clipboard, but still the copy command. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}
