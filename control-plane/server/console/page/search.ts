// The search box for everything: a value, a rule, a domain, a worker, a revision, or a pasted descriptor.
import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { FindsJson } from '../../admin/controllers/finds.ts';
import type { TopJson } from '../../admin/controllers/top.ts';
import { Dialog } from './confirm.ts';
import { toAgo, toLines, toPairs, toShortId, toShown } from './format.ts';
import { parsePasted } from './pasted.ts';
import { useResource } from './resource.ts';
import { hrefOf } from './route.ts';

interface Find {
  readonly kind: string;
  readonly href: string;
  readonly text: string;
  readonly detail: string;
}

/** Also opened with `/` and Ctrl-K. */
export function SearchButton() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isCommand = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey);
      if (!isCommand && (event.key !== '/' || isTyping(event.target))) return;
      event.preventDefault();
      // Above another dialog, it would hide the decision to be made there.
      if (document.querySelector('dialog[open]') === null) setOpen(true);
    };
    // Back and forward lead to another page, which the box would hide.
    const close = () => setOpen(false);
    window.addEventListener('keydown', onKey);
    window.addEventListener('hashchange', close);
    return () => {
      window.removeEventListener('keydown', onKey);
      window.removeEventListener('hashchange', close);
    };
  }, []);
  return html`<button type="button" class="search" aria-keyshortcuts="/ Control+K"
      onClick=${() => setOpen(true)}><span class="wide">Why was this refused? <kbd aria-hidden="true">/</kbd></span><span class="narrow">Find</span></button>
    ${isOpen && html`<${SearchDialog} onClose=${() => setOpen(false)} />`}`;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select');
}

function SearchDialog({ onClose }: { onClose(): void }) {
  const [text, setText] = useState('');
  const [isSubmitted, setSubmitted] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const { finds, isReading } = useFinds(text.trim());

  function move(event: KeyboardEvent): void {
    // Otherwise the first Escape would only clear the field.
    if (event.key === 'Escape') {
      event.preventDefault();
      onClose();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const links = [...(list.current?.querySelectorAll('a') ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement) + step;
    (at < 0 ? input.current : links[Math.min(at, links.length - 1)])?.focus();
  }

  function submit(event: Event): void {
    event.preventDefault();
    setSubmitted(true);
  }

  const [first] = finds;
  // While the search runs, the list belongs to the previous text.
  const chosen = isSubmitted && !isReading ? first?.href : undefined;
  useEffect(() => {
    if (chosen === undefined) return;
    location.hash = chosen;
    onClose();
  }, [chosen]);

  return html`<${Dialog} onCancel=${onClose}>
    <form class="finder" role="search" onSubmit=${submit} onKeyDown=${move}>
      <h2 id="dialog-title">Why was this refused?</h2>
      <input ref=${input} type="search" autofocus autocomplete="off" spellcheck=${false} maxlength="2000"
        aria-label="A value, rule, domain, worker or revision, or a descriptor"
        placeholder="customer=ada, a rule, domain, worker, revision" value=${text}
        onInput=${(event: InputEvent) => {
          setSubmitted(false);
          setText((event.target as HTMLInputElement).value);
        }} />
      <ul ref=${list} class="finds">${finds.map(
        ({ kind, href, text: name, detail }) => html`<li key=${href}>
          <a href=${href} onClick=${onClose}><span class="kind">${kind}</span><strong>${name}</strong> <span class="quiet">${detail}</span></a></li>`,
      )}</ul>
      <p class="quiet" role="status">${
        text.trim() === ''
          ? 'A value is found with its counters, limited or not; a descriptor is pasted as key=value, key=value.'
          : finds.length === 0
            ? isReading
              ? 'Reading…'
              : `Nothing matches '${toShown(text.trim())}'.`
            : ''
      }</p>
    </form>
  <//>`;
}

function useFinds(text: string): { readonly finds: readonly Find[]; readonly isReading: boolean } {
  const pasted = parsePasted(text);
  const [first] = pasted?.entries ?? [];
  const sought = (first?.key ?? text).slice(0, 200);
  const query = encodeURIComponent(sought);
  const named = useResource<FindsJson>(sought === '' ? undefined : `finds?text=${query}`);
  const value = encodeURIComponent((first?.value || sought).slice(0, 200));
  const top = useResource<TopJson>(sought === '' ? undefined : `top?limit=6&search=${value}`);
  if (sought === '') return { finds: [], isReading: false };
  const { domains = [], rules = [], values = [], workers = [], revisions = [] } = named.value ?? {};
  const finds: Find[] = [];
  if (pasted !== undefined) {
    const domainNames =
      pasted.domain === undefined
        ? new Set(rules.map(({ domain }) => domain))
        : new Set([pasted.domain]);
    for (const domain of domainNames) {
      finds.push({
        kind: 'Request',
        href: hrefOf('why', { domain, descriptor: toLines(pasted.entries) }),
        text: toPairs(pasted.entries),
        detail: `in ${toShown(domain)}`,
      });
    }
  }
  for (const { domain, entries, rule } of top.value?.values ?? []) {
    const href = hrefOf('why', { domain, descriptor: toLines(entries) });
    if (finds.some((find) => find.href === href)) continue;
    finds.push({
      kind: 'Limited',
      href,
      text: toPairs(entries),
      detail: `by ${toShown(rule || domain)}`,
    });
  }
  if (pasted === undefined) {
    finds.push(
      ...rules.map(({ rule, limits }) => ({
        kind: 'Rule',
        href: hrefOf('rule', { rule }),
        text: toShown(rule),
        detail: toShown(limits.join(', ')),
      })),
      ...domains.map((domain) => ({
        kind: 'Domain',
        href: hrefOf('rules', { domain }),
        text: toShown(domain),
        detail: '',
      })),
      ...workers.map((name) => ({
        kind: 'Worker',
        href: hrefOf('worker', { name }),
        text: toShown(name),
        detail: '',
      })),
      ...revisions.map(({ id, author, message, at }) => ({
        kind: 'Revision',
        href: hrefOf('revisions', { open: toShortId(id) }),
        text: toShortId(id),
        detail: toShown([message?.split('\n')[0], author, toAgo(at)].filter(Boolean).join(', ')),
      })),
      // A value that no rule refuses now still has counters.
      ...values
        .map(({ domain, entries, limits }) => ({
          kind: 'Counter',
          href: hrefOf('why', { domain, descriptor: toLines(entries) }),
          text: toPairs(entries),
          detail: toShown(`in ${domain}, ${limits.join(', ')}`),
        }))
        .filter(({ href }) => finds.every((find) => find.href !== href)),
    );
  }
  const isReading = [named, top].some((each) => !each.isOwn && each.problem === undefined);
  return { finds, isReading };
}
