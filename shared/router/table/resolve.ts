// From path parts to the node of the table that they name: the longest module, then the longest class in
// it, else its Default (behaviour: longest-module-wins). The remaining parts are positional.
import { canonicalPart } from './names.ts';
import type { ClassNode, ModuleNode } from './table.ts';

export interface Match {
  readonly node: ClassNode;
  readonly positionals: readonly string[];
}

/** Undefined where nothing is served. `strict`: only the canonical spelling matches. */
export function resolvePath(
  root: ModuleNode,
  parts: readonly string[],
  { strict }: { readonly strict: boolean },
): Match | undefined {
  let used = 0;
  let misspelt = false;
  function step<Node>(children: ReadonlyMap<string, Node> | undefined): Node | undefined {
    const part = parts[used];
    if (part === undefined || children === undefined || children.size === 0) return undefined;
    // Names of the table are canonical, so that a part which is one needs no look at its spelling.
    let next = children.get(part);
    if (next === undefined) {
      const name = canonicalPart(part);
      next = name === undefined ? undefined : children.get(name);
      if (next === undefined) return undefined;
      misspelt ||= strict;
    }
    used += 1;
    return next;
  }
  const taken: string[] = [];
  /** A part that names nothing here is taken where the next one names something below it; else all stays as it is
   * without such a folder (behaviour: below-an-id). */
  function stepBelowPart({ parameter, classes, fallback }: ModuleNode): ModuleNode | undefined {
    const part = parts[used];
    const next = parts[used + 1];
    if (parameter === undefined || part === undefined || next === undefined) return undefined;
    if (isNamed(classes, part) || (fallback !== undefined && isNamed(fallback.children, part))) {
      return undefined;
    }
    const { node } = parameter;
    if (!isNamed(node.modules, next) && !isNamed(node.classes, next)) return undefined;
    used += 1;
    taken.push(part);
    return node;
  }
  let module = root;
  while (true) {
    const next = step(module.modules) ?? stepBelowPart(module);
    if (next === undefined) break;
    module = next;
  }
  let node = step(module.classes) ?? module.fallback;
  for (let next = step(node?.children); next !== undefined; next = step(node?.children)) {
    node = next;
  }
  if (node === undefined || misspelt) return undefined;
  const rest = parts.slice(used);
  return { node, positionals: taken.length === 0 ? rest : [...taken, ...rest] };
}

function isNamed(children: ReadonlyMap<string, unknown>, part: string): boolean {
  return children.has(canonicalPart(part) ?? part);
}
