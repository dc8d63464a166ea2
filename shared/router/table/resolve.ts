// From path parts to the node of the table that they name: the longest module, then the longest class in
// it, else its Default (behaviour: longest-module-wins). The remaining parts are positional.
import type { ClassNode, ModuleNode } from './nodes.ts';

export interface Match {
  readonly module: ModuleNode;
  /** Undefined where nothing is served. */
  readonly node: ClassNode | undefined;
  readonly positionals: readonly string[];
}

const lower = /^[a-z0-9._-]+$/;
const canonical = /^[a-z0-9.-]+$/;
const upper = /^[A-Z0-9._-]+$/;

const noParts: readonly string[] = [];
const noIds: readonly number[] = [];

/** `strict`: only the canonical spelling matches. */
export function resolvePath(
  root: ModuleNode,
  parts: readonly string[],
  { strict }: { readonly strict: boolean },
): Match {
  let at = 0;
  let module = root;
  let idsAt: readonly number[] = noIds;
  while (true) {
    let next = childOf(module.modules, parts[at]);
    if (next === undefined) {
      next = moduleBelowId(module, parts[at], parts[at + 1]);
      if (next === undefined) break;
      idsAt = [...idsAt, at];
    }
    module = next;
    at += 1;
  }
  let node = childOf(module.classes, parts[at]);
  if (node === undefined) node = module.fallback;
  else at += 1;
  while (node !== undefined) {
    const next = childOf(node.children, parts[at]);
    if (next === undefined) break;
    node = next;
    at += 1;
  }
  if (node === undefined || (strict && !areCanonical(parts.slice(0, at), idsAt))) {
    return { module, node: undefined, positionals: noParts };
  }
  const rest = at === parts.length ? noParts : parts.slice(at);
  if (idsAt.length === 0) return { module, node, positionals: rest };
  const ids = parts.filter((_, index) => idsAt.includes(index));
  return { module, node, positionals: [...ids, ...rest] };
}

function areCanonical(parts: readonly string[], idsAt: readonly number[]): boolean {
  return parts.every((part, at) => idsAt.includes(at) || isCanonical(part));
}

/**
 * A part that names nothing here is an id where the next one names something below it; else all stays as it is without
 * such a folder (behaviour: below-an-id).
 */
function moduleBelowId(
  { parameter, classes, fallback }: ModuleNode,
  part: string | undefined,
  next: string | undefined,
): ModuleNode | undefined {
  if (parameter === undefined || next === undefined) return undefined;
  if (childOf(classes, part) !== undefined) return undefined;
  if (fallback !== undefined && childOf(fallback.children, part) !== undefined) return undefined;
  const { node } = parameter;
  const isNamed = childOf(node.modules, next) ?? childOf(node.classes, next);
  return isNamed === undefined ? undefined : node;
}

/** Names of the table are canonical, so that a part which is one needs no check of its spelling. */
function childOf<Node>(
  children: ReadonlyMap<string, Node>,
  part: string | undefined,
): Node | undefined {
  if (part === undefined || children.size === 0) return undefined;
  const child = children.get(part);
  if (child !== undefined) return child;
  const name = canonicalPart(part);
  return name === undefined ? undefined : children.get(name);
}

/** The canonical form of a path part, or undefined where it is no spelling of any name: kebab or
 * snake, all lower or all upper case, ASCII only. */
export function canonicalPart(part: string): string | undefined {
  if (isCanonical(part)) return part;
  if (!lower.test(part) && !upper.test(part)) return undefined;
  return part.replaceAll('_', '-').toLowerCase();
}

function isCanonical(part: string): boolean {
  return canonical.test(part);
}
