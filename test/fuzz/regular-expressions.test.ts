// Tests every regular expression in the product's source with texts that make a backtracking matcher slow: its time
// must grow no faster than the text.
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { cpuMs } from '../support/cpu-time.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Found {
  readonly file: string;
  readonly position: string;
  readonly pattern: RegExp;
}

/** A literal is only recognized where a value may begin, so that neither a division nor the end of a tag is mistaken
 * for one. */
const literal =
  /(?:^\s*|[=(,:?!&|;{}[]\s*|return\s+)\/(?![*/>])((?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)/gm;

function findPatterns(): Found[] {
  const files = globSync('{shared,worker,control-plane}/**/*.{ts,mjs}', { cwd: root }).filter(
    (file) => !/\.test\.ts$|-fixture\.ts$/.test(file),
  );
  return files.sort().flatMap((file) => {
    const code = readFileSync(`${root}/${file}`, 'utf8').replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '');
    return [...code.matchAll(literal)].flatMap((match) => {
      const [, source = '', flags = ''] = match;
      const line = code.slice(0, match.index + match[0].indexOf('/')).split('\n').length;
      return { file, position: `${file}:${line}`, pattern: new RegExp(source, flags) };
    });
  });
}

/** Expressions that are slow on long texts but never get one, with the limit. */
const boundedElsewhere: ReadonlyMap<string, string> = new Map([
  ['control-plane/command/admin/admin-options.ts //.*@', 'the command line of who waits for it'],
  [
    'shared/router/openapi/openapi.ts (?:^|[^A-Za-z0-9]+)([A-Za-z0-9])',
    'paths in the source of controllers',
  ],
  [
    'shared/settings/parse-settings.ts _SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_\\d+_(TCP|UDP|SCTP)(_|$)',
    'names in the environment of the process',
  ],
]);

/** The first measurement uses short texts, for which quadratic matching takes about a millisecond and linear matching
 * some microseconds. What seems slow is measured again with a text six times as long: linear matching takes six times
 * as long too, quadratic matching 36 times. */
const shortLength = 2_000;
const suspiciousMs = 0.2;
const longLength = 12_000;
const slowGrowth = 15;

/** The repeated parts: some that the pattern contains, and some that it does not. */
function toPumps({ source }: RegExp): string[] {
  const plain = source.replaceAll(/\\[a-zA-Z]/g, '');
  const specials = new Set(plain.replaceAll(/[\w()[\]{}|?*+^$\\]/g, ''));
  const words = new Set([...plain.matchAll(/[\w -]{2,20}/g)].map(([word]) => word));
  const singles = [...specials, ...'01aAf_- \t\n\r/:.,=*@%[(\\"\'\u0001é'];
  const few = [...specials, '0', 'a', ' '].slice(0, 12);
  const pairs = few.flatMap((one) => few.map((other) => one + other));
  return [...new Set([...singles, ...words, ...pairs])];
}

function toAttacks(pattern: RegExp): ((length: number) => string)[] {
  const literalStart = /^\^?([\w:/'" ,-]{1,20})/.exec(pattern.source)?.[1] ?? '';
  return [...new Set(['', literalStart, "'", '0.'])].flatMap((prefix) =>
    toPumps(pattern).flatMap((pump) =>
      ['', '\u0000', '\n\u0000'].map(
        (end) => (length: number) => prefix + pump.repeat(Math.ceil(length / pump.length)) + end,
      ),
    ),
  );
}

function millisecondsOf(pattern: RegExp, text: string): number {
  pattern.lastIndex = 0;
  const before = cpuMs();
  pattern.test(text);
  return cpuMs() - before;
}

/** The minimum of several measurements, stopping at `enoughMs`: the first ones may compile the pattern. */
function leastMsOf(pattern: RegExp, text: string, enoughMs: number): number {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5 && leastMs > enoughMs; round++)
    leastMs = Math.min(leastMs, millisecondsOf(pattern, text));
  return leastMs;
}

function isSlow(pattern: RegExp, attack: (length: number) => string): boolean {
  const shortMs = leastMsOf(pattern, attack(shortLength), suspiciousMs);
  if (shortMs <= suspiciousMs) return false;
  const boundMs = slowGrowth * shortMs;
  return leastMsOf(pattern, attack(longLength), boundMs) > boundMs;
}

test('a pattern that takes quadratic time is noticed', (t) => {
  t.true(toAttacks(/0+$/).some((attack) => isSlow(/0+$/, attack)));
  t.false(toAttacks(/^0+$/).some((attack) => isSlow(/^0+$/, attack)));
});

test('no regular expression takes more than linear time', (t) => {
  t.timeout(120_000);
  const found = findPatterns();
  let tried = 0;
  const slow = found.filter(({ file, pattern }) => {
    if (boundedElsewhere.has(`${file} ${pattern.source.replaceAll('\\/', '/')}`)) return false;
    return toAttacks(pattern).some((attack) => {
      tried++;
      return isSlow(pattern, attack);
    });
  });
  t.log(`${found.length} expressions, ${tried} texts`);
  t.deepEqual(
    slow.map(({ position, pattern }) => `${position} ${pattern}`),
    [],
  );
  t.true(found.length > 150, 'most literals were not found');
});
