// Writes families in the two exposition formats, piece by piece, which bounds memory and time of each step.
import type { Family, Series } from './series.ts';

export type ExpositionForm = 'text' | 'openmetrics';

export const contentTypes = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const satisfies Record<ExpositionForm, string>;

/** Chooses OpenMetrics for clients that prefer it to plain text, or accept both equally. */
export function chooseForm(accept: string): ExpositionForm {
  let openmetrics = 0;
  let text = 0;
  for (const item of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = item.split(';').map((part) => part.trim());
    const value = (name: string) =>
      parameters.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
    const quality = Number(value('q') ?? 1);
    const isOurVersion = (value('version') ?? '1.0.0') === '1.0.0';
    if (range === 'application/openmetrics-text' && isOurVersion) {
      openmetrics = Math.max(openmetrics, quality);
    } else if (range === 'text/plain') text = Math.max(text, quality);
  }
  return openmetrics > 0 && openmetrics >= text ? 'openmetrics' : 'text';
}

/** Yields pieces of complete lines, each with at most about `seriesPerPiece` series. */
export function* toExposition(
  families: Iterable<Family>,
  form: ExpositionForm,
  nowMs: () => number,
  seriesPerPiece: number,
): Generator<string> {
  let piece = '';
  let count = 0;
  for (const family of families) {
    let isBegun = false;
    for (const series of family.series) {
      const lines = toLines(family, series, form, nowMs());
      if (lines !== '' && !isBegun) {
        isBegun = true;
        piece += toHead(family, form);
      }
      piece += lines;
      if (++count % seriesPerPiece !== 0) continue;
      yield piece;
      piece = '';
    }
  }
  yield form === 'openmetrics' ? `${piece}# EOF\n` : piece;
}

function toHead({ name, type, help }: Family, form: ExpositionForm): string {
  const isOpen = form === 'openmetrics';
  const text = help.replace(/[\\\n"]/g, (character) => {
    if (character === '"') return isOpen ? '\\"' : character;
    return character === '\n' ? '\\n' : '\\\\';
  });
  // OpenMetrics requires _total for a counter's samples; with an unknown type a metric has the same name in both
  // formats.
  const isTotal = isOpen && type === 'counter' && name.endsWith('_total');
  const shownName = isTotal ? name.slice(0, -'_total'.length) : name;
  const shownType = isOpen && type === 'counter' && !isTotal ? 'unknown' : type;
  return `# HELP ${shownName} ${text}\n# TYPE ${shownName} ${shownType}\n`;
}

function toLines({ name, type }: Family, series: Series, form: ExpositionForm, nowMs: number) {
  const { labels } = series;
  const braces = labels === '' ? '' : `{${labels}}`;
  if (series.kind === 'value') {
    const value = series.read(nowMs);
    return value === undefined ? '' : `${name}${braces} ${toNumber(value)}\n`;
  }
  const timer = series.read(nowMs);
  if (timer === undefined) return '';
  const [suffix, label] = type === 'histogram' ? ['_bucket', 'le'] : ['', 'quantile'];
  const before = labels === '' ? '' : `${labels},`;
  let lines = '';
  for (const { at, value } of timer.samples()) {
    const bound = form === 'openmetrics' && Number.isInteger(at) ? `${at}.0` : toNumber(at);
    lines += `${name}${suffix}{${before}${label}="${bound}"} ${toNumber(value)}\n`;
  }
  return `${lines}${name}_sum${braces} ${toNumber(timer.sum)}\n${name}_count${braces} ${timer.count}\n`;
}

function toNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}
