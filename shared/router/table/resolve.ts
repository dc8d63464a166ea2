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
  let module = root;
  for (let next = step(module.modules); next !== undefined; next = step(module.modules)) {
    module = next;
  }
  let node = step(module.classes) ?? module.fallback;
  for (let next = step(node?.children); next !== undefined; next = step(node?.children)) {
    node = next;
  }
  if (node === undefined || misspelt) return undefined;
  return { node, positionals: parts.slice(used) };
}
