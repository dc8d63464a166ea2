// Reads the fields of one mapping of a YAML document by name, and remembers which were asked for.
import { parseDuration } from '../../shared/duration.ts';
import { nearestWord } from '../../shared/nearest-word.ts';
import type { DocumentReporter } from '../../shared/rules/document-reporter.ts';
import { type TreeMap, type TreeNode, toNoun } from '../../shared/rules/yaml-node.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';

/** A field that is absent, null, or wrong is undefined or empty; what is wrong has been reported. */
export interface MapReader {
  has(name: string): boolean;
  text(name: string): string | undefined;
  flag(name: string): boolean | undefined;
  number(name: string): number | undefined;
  numbers(name: string): readonly number[];
  /** In milliseconds. */
  duration(name: string): number | undefined;
  word<Word extends string>(name: string, words: readonly Word[]): Word | undefined;
  /** Names with texts. */
  texts(name: string): readonly (readonly [name: string, text: string])[];
  map(name: string): MapReader;
  maps(name: string): readonly MapReader[];
  /** At the place of the field, or where it is missing. */
  error(name: string, message: string, hint?: string): void;
  /** Warns of the fields that nobody has asked for. */
  warnOfOthers(): void;
}

/** `path` is where in the document the mapping is. An absent mapping has no fields. */
export function createMapReader(
  map: TreeMap | undefined,
  path: string,
  reporter: DocumentReporter,
): MapReader {
  const known = new Set<string>();
  const pathOf = (name: string) => (path === '' ? name : `${path}.${name}`);

  function find(name: string): TreeNode | undefined {
    known.add(name);
    const node = map?.entries.get(name)?.value;
    return node === undefined || node.kind === 'null' || node.kind === 'gap' ? undefined : node;
  }

  function refuse(node: TreeNode, name: string, wanted: string, at = pathOf(name)): undefined {
    const shown = 'source' in node ? `'${toExcerpt(node.source)}'` : `a ${toNoun(node)}`;
    reporter.error('value-type', node.offset, at, `${name} is ${shown}, not ${wanted}`);
  }

  function toText(node: TreeNode, name: string, at?: string): string | undefined {
    return 'source' in node ? node.source : refuse(node, name, 'text', at);
  }

  function toNumber(node: TreeNode, name: string): number | undefined {
    const isNumber = node.kind === 'int' || node.kind === 'float';
    if (isNumber && !Number.isNaN(node.value)) return Number(node.value);
    return refuse(node, name, 'a number');
  }

  function toItems(name: string): readonly TreeNode[] {
    const node = find(name);
    if (node === undefined) return [];
    if (node.kind === 'list') return node.items.filter(({ kind }) => kind !== 'gap');
    refuse(node, name, 'a list');
    return [];
  }

  const reader: MapReader = {
    has: (name) => find(name) !== undefined,
    text(name) {
      const node = find(name);
      return node && toText(node, name);
    },
    flag(name) {
      const node = find(name);
      if (node === undefined) return undefined;
      return node.kind === 'bool' ? node.value === true : refuse(node, name, 'true or false');
    },
    number(name) {
      const node = find(name);
      return node && toNumber(node, name);
    },
    numbers(name) {
      return toItems(name)
        .map((item) => toNumber(item, name))
        .filter((number) => number !== undefined);
    },
    duration(name) {
      const node = find(name);
      if (node === undefined) return undefined;
      const result = parseDuration('source' in node ? node.source : '');
      const isFine = result.ok && result.ms >= 0;
      return isFine ? result.ms : refuse(node, name, 'a duration such as 90s or 10m');
    },
    word(name, words) {
      const node = find(name);
      if (node === undefined) return undefined;
      const text = 'source' in node ? node.source : '';
      const word = words.find((one) => one === text);
      return text === '' || word !== undefined ? word : refuse(node, name, words.join(' or '));
    },
    texts(name) {
      const node = find(name);
      if (node === undefined) return [];
      if (node.kind !== 'map') {
        refuse(node, name, 'a mapping of names to texts');
        return [];
      }
      return [...node.entries].flatMap(([key, { value }]) => {
        const text =
          value.kind === 'gap'
            ? undefined
            : toText(value, toExcerpt(key), `${pathOf(name)}.${toExcerpt(key)}`);
        return text === undefined ? [] : [[key, text] as const];
      });
    },
    map(name) {
      const node = find(name);
      const isMap = node?.kind === 'map';
      if (node !== undefined && !isMap) refuse(node, name, 'a mapping');
      return createMapReader(isMap ? node : undefined, pathOf(name), reporter);
    },
    maps(name) {
      return toItems(name).flatMap((item, index) => {
        const at = `${pathOf(name)}[${index}]`;
        if (item.kind === 'map') return createMapReader(item, at, reporter);
        refuse(item, `an item of ${name}`, 'a mapping', at);
        return [];
      });
    },
    error(name, message, hint) {
      const offset = map?.entries.get(name)?.value.offset ?? map?.offset;
      reporter.error('metric-mapping', offset, pathOf(name), message, hint);
    },
    warnOfOthers() {
      for (const [name, { key }] of map?.entries ?? []) {
        if (known.has(name)) continue;
        const guess = nearestWord(name, [...known]);
        const hint = guess === undefined ? undefined : `did you mean ${guess}?`;
        reporter.warning(
          'misplaced-key',
          key.offset,
          pathOf(toExcerpt(name)),
          `${toExcerpt(name)} has no effect here`,
          hint,
        );
      }
    },
  };
  return reader;
}
