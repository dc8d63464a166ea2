// Converts a YAML document to its tree of nodes: aliases and `<<` merges resolved, scalars read as YAML 1.1.
// document.ts interprets the keys.
import type { Alias, Scalar, YAMLMap, Node as YamlNode } from 'yaml';
import { toExcerpt } from '../../text-excerpt.ts';
import { createTextReporter, type Reporter } from '../problem/reporter.ts';
import { findBarePlaceholder, findPlaceholder, renderHint } from './foreign-syntax.ts';
import {
  type ScalarValue,
  type TreeEntry,
  type TreeList,
  type TreeMap,
  type TreeNode,
  toNoun,
  toScalarValue,
} from './yaml-node.ts';
import { readOrdinaryYaml } from './yaml-ordinary.ts';
import { maxDepth, parseYamlText, yamlLibrary } from './yaml-text.ts';

export const maxTextLength = 4 * 1024 * 1024;
/**
 * Limits of nodes and text read through aliases: a few nested anchors can represent billions of nodes, or repeat a long
 * text.
 */
export const maxAliasedNodes = 500_000;
const maxAliasedCharacters = maxTextLength;
/** An unknown alias is compared with these anchors only. */
const maxGuessedAnchors = 100;

export interface ParsedYaml {
  /** Undefined when nothing in the text is readable; an empty document is a null scalar. */
  readonly root: TreeNode | undefined;
  /** Contains the problems so far, and receives those that readers of the tree find. */
  readonly reporter: Reporter;
}

/** `file` is the name of the text for its author; it is part of each problem. */
export function parseYamlTree(text: string, file: string): ParsedYaml {
  const yaml = text.startsWith('\ufeff') ? text.slice(1) : text;
  const reporter = createTextReporter(file, yaml);
  if (!checkYamlText(yaml, reporter)) return { root: undefined, reporter };
  const root = readOrdinaryYaml(yaml) ?? parseAnyYaml(yaml, reporter);
  const placeholder = reporter.hasErrors ? findBarePlaceholder(yaml) : undefined;
  return placeholder === undefined ? { root, reporter } : refuseTemplate(yaml, file, placeholder);
}

/** Characters that YAML does not allow, and the replacement character from bytes that are not UTF-8. */
const forbiddenCharacter =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is searched
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd-\uffff]|\p{Surrogate}/u;

/** False when `text` cannot be YAML or is too long, which was then reported. */
function checkYamlText(text: string, reporter: Reporter): boolean {
  if (text.length > maxTextLength) {
    const message = `the document is longer than ${maxTextLength} characters`;
    reporter.error('too-large', undefined, '', message, 'split it into several files');
    return false;
  }
  const forbidden = forbiddenCharacter.exec(text);
  if (forbidden) {
    reportForbidden(forbidden[0], forbidden.index, reporter);
    return false;
  }
  return true;
}

function reportForbidden(character: string, offset: number, reporter: Reporter): void {
  if (character === '\ufffd') {
    const message = 'the text is not valid UTF-8';
    reporter.error('text-encoding', offset, '', message, 'save the file as UTF-8');
    return;
  }
  const code = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
  const message = `the character U+${code} is not allowed in YAML`;
  reporter.error('text-encoding', offset, '', message, 'remove it');
}

/** Reports one problem instead of all those that a template causes in YAML. */
function refuseTemplate(yaml: string, file: string, offset: number): ParsedYaml {
  const reporter = createTextReporter(file, yaml);
  const shown = findPlaceholder(yaml.slice(offset)) ?? yaml.slice(offset, offset + 2);
  const message = `the document is a template: '${toExcerpt(shown)}' is not filled in`;
  reporter.error('template', offset, '', message, renderHint);
  return { root: undefined, reporter };
}

/** The same tree as `parseYamlTree`, for ordinary YAML too, by the library alone. */
export function parseAnyYaml(text: string, reporter: Reporter): TreeNode | undefined {
  const root = parseYamlText(text, reporter);
  return root === undefined ? undefined : createTree(root, reporter);
}

function createTree(root: YamlNode | null, reporter: Reporter): TreeNode {
  const { isAlias, isMap, isScalar, isSeq } = yamlLibrary();
  const { targets, anchors } = resolveAliases(root);
  const firstAnchors = [...anchors.keys().take(maxGuessedAnchors)];
  /** The collections being read, to find an anchor within itself. */
  const open = new Set<YamlNode>();
  let aliasDepth = 0;
  let aliasedNodes = 0;
  let aliasedCharacters = 0;
  let isTooMuch = false;

  /** Reports once; everything after it is skipped. */
  function refuseAliases(message: string, path: string, offset: number): void {
    if (!isTooMuch) {
      reporter.error('too-large', offset, path, message, 'use fewer aliases within anchors');
    }
    isTooMuch = true;
  }

  /** `site` is the offset to use for a node without text. */
  function toTree(node: YamlNode | null, path: string, depth: number, site: number): TreeNode {
    const offset = node?.range?.[0] ?? site;
    if (depth > maxDepth) {
      reporter.error('too-large', offset, path, `nested more than ${maxDepth} levels deep`);
      return { kind: 'gap', offset };
    }
    if (aliasDepth > 0) {
      if (++aliasedNodes > maxAliasedNodes) {
        refuseAliases(`aliases expand to more than ${maxAliasedNodes} values`, path, offset);
      }
      aliasedCharacters += isScalar(node) ? (node.source?.length ?? 0) : 0;
      if (aliasedCharacters > maxAliasedCharacters) {
        const message = `aliases expand to more than ${maxAliasedCharacters} characters`;
        refuseAliases(message, path, offset);
      }
      if (isTooMuch) return { kind: 'gap', offset };
    }
    if (node === null) return { ...toScalarValue(''), source: '', isQuoted: false, offset };
    if (isAlias(node)) return toAliased(node, path, depth, offset);
    if (isScalar(node)) return toScalar(node, path, offset, reporter);
    open.add(node);
    const tree = isMap<YamlNode, YamlNode | null>(node)
      ? toMap(node, path, depth, offset)
      : toList(node, path, depth, offset);
    open.delete(node);
    return tree;
  }

  function toAliased(alias: Alias, path: string, depth: number, offset: number): TreeNode {
    const target = targets.get(alias);
    const name = toExcerpt(alias.source);
    if (target === undefined) {
      const hint = describeUnknownAnchor(alias);
      reporter.error('yaml-anchor', offset, path, `unknown anchor '${name}'`, hint);
      return { kind: 'gap', offset };
    }
    if (open.has(target)) {
      reporter.error('yaml-anchor', offset, path, `anchor '${name}' contains itself`);
      return { kind: 'gap', offset };
    }
    aliasDepth++;
    const tree = toTree(target, path, depth + 1, offset);
    aliasDepth--;
    return tree;
  }

  function describeUnknownAnchor({ source }: Alias): string {
    const name = toExcerpt(source);
    const later = anchors.get(source)?.range;
    if (later)
      return `the anchor at ${reporter.positionText(later[0])} comes too late: move it before this`;
    const guess = reporter.nearestWord(source, firstAnchors);
    if (guess !== undefined) return `did you mean '*${toExcerpt(guess)}'?`;
    const asText = `a value that begins with '*' is written in quotes: '*${name}'`;
    return /^[\w-]+$/.test(source)
      ? `give a value before it the anchor '&${name}'; or, if it is no alias, ${asText}`
      : asText;
  }

  function toList(node: YamlNode, path: string, depth: number, offset: number): TreeList {
    const items = isSeq<YamlNode | null>(node) ? node.items : [];
    return {
      kind: 'list',
      items: items.map((item, index) => toTree(item, `${path}[${index}]`, depth + 1, offset)),
      offset,
    };
  }

  function toMap(
    map: YAMLMap<YamlNode, YamlNode | null>,
    path: string,
    depth: number,
    offset: number,
  ): TreeMap {
    const entries = new Map<string, TreeEntry>();
    const merged = new Map<string, TreeEntry>();
    let isIncomplete = false;
    for (const pair of map.items) {
      const site = pair.key.range?.[0] ?? offset;
      const key = toTree(pair.key, path, depth + 1, site);
      if (key.kind === 'gap') {
        isIncomplete = true;
        continue;
      }
      if (key.kind === 'list' || key.kind === 'map') {
        reporter.error('unknown-key', site, path, `key is not of type string: a ${toNoun(key)}`);
        isIncomplete = true;
        continue;
      }
      const valuePath = (path === '' ? '' : `${path}.`) + toExcerpt(key.source);
      const value = toTree(pair.value, valuePath, depth + 1, pair.key.range?.[0] ?? site);
      if (key.source === '<<' && !key.isQuoted) {
        merge(value, merged, path);
        if (value.kind === 'gap') isIncomplete = true;
        continue;
      }
      const earlier = entries.get(key.source);
      if (earlier) {
        const message = `key '${toExcerpt(key.source)}' is repeated; the last one counts`;
        const hint = `the one at ${reporter.positionText(earlier.key.offset)} is lost: ${describeLost(earlier.value)}`;
        reporter.advise('repeated-key', key.offset, valuePath, message, hint);
      }
      entries.set(key.source, { key, value });
    }
    for (const [source, entry] of merged) {
      if (!entries.has(source)) entries.set(source, entry);
    }
    return { kind: 'map', entries, ...(isIncomplete && { isIncomplete }), offset };
  }

  /** Adds the entries of a `<<`; with several maps in a list, the first has precedence. */
  function merge(value: TreeNode, merged: Map<string, TreeEntry>, path: string): void {
    const sources = value.kind === 'list' ? [...value.items].reverse() : [value];
    for (const source of sources) {
      if (source.kind === 'map') {
        for (const [key, entry] of source.entries) merged.set(key, entry);
      } else if (source.kind !== 'gap') {
        const message = `'<<' can only merge a mapping, not a ${toNoun(source)}`;
        const hint = 'give it an alias, such as <<: *name';
        reporter.error('yaml-merge', source.offset, path, message, hint);
      }
    }
  }

  return toTree(root, '', 0, 0);
}

interface Aliases {
  /** For each alias, the node that its anchor names at that position in the document. */
  readonly targets: ReadonlyMap<Alias, YamlNode>;
  /** All anchors of the document, by name. */
  readonly anchors: ReadonlyMap<string, YamlNode>;
}

function resolveAliases(root: YamlNode | null): Aliases {
  const anchors = new Map<string, YamlNode>();
  const targets = new Map<Alias, YamlNode>();
  if (root === null) return { targets, anchors };
  yamlLibrary().visit(root, {
    Alias(_, alias) {
      const target = anchors.get(alias.source);
      if (target) targets.set(alias, target);
    },
    Value(_, node) {
      if (node.anchor) anchors.set(node.anchor, node);
    },
  });
  return { targets, anchors };
}

const tagPrefix = 'tag:yaml.org,2002:';

function toScalar(scalar: Scalar, path: string, offset: number, reporter: Reporter): TreeNode {
  const source = scalar.source ?? '';
  const isQuoted = scalar.type !== undefined && scalar.type !== 'PLAIN';
  const text: ScalarValue = { kind: 'text', value: source };
  // An escape can produce a character that the text itself may not contain, and that protobuf cannot encode.
  if (!source.isWellFormed()) {
    const hint = 'write the character itself, or both halves of its escape';
    reporter.error('text-encoding', offset, path, 'the text has half of a surrogate pair', hint);
    return { kind: 'gap', offset };
  }
  if (scalar.tag === undefined) {
    return { ...(isQuoted ? text : toScalarValue(source)), source, isQuoted, offset };
  }
  const wanted = scalar.tag.startsWith(tagPrefix) ? scalar.tag.slice(tagPrefix.length) : '';
  // Any other tag leaves the text unchanged, as in the reference.
  if (!['int', 'float', 'bool', 'null'].includes(wanted)) {
    return { ...text, source, isQuoted, offset };
  }
  const resolved = toScalarValue(source);
  if (resolved.kind === wanted) return { ...resolved, source, isQuoted, offset };
  reporter.error('yaml-tag', offset, path, `'${toExcerpt(source)}' is not of the type !!${wanted}`);
  return { kind: 'gap', offset };
}

/** The value of a repeated key, to help the author find it. */
function describeLost(value: TreeNode): string {
  if ('source' in value) return `'${toExcerpt(value.source)}'`;
  if (value.kind === 'list') return `a list of ${value.items.length}`;
  return value.kind === 'map'
    ? `a mapping with ${[...value.entries.keys()]
        .slice(0, 5)
        .map((key) => toExcerpt(key))
        .join(', ')}`
    : 'it cannot be read';
}
