// The rules of one name in a document, which is all that their history needs from it. Pure.
import {
  type RuleDescriptor,
  type RuleDocument,
  toCompositeKey,
} from '../../../shared/rules/rule-document.ts';

/** The document reduced to the rules of this name on its top level, without the rules below them; without any rule for
 * ''. A name has the domain and the levels: `domain.key`, `domain.key_value`, `domain.key.key_value`. */
export function withRulesOf(document: RuleDocument, name: string): RuleDocument {
  const start = `${document.domain}.`;
  const found = name.startsWith(start)
    ? findBelow(document.descriptors, name.slice(start.length))
    : [];
  return { ...document, descriptors: found.map((each) => ({ ...each, descriptors: [] })) };
}

function findBelow(descriptors: readonly RuleDescriptor[], name: string): RuleDescriptor[] {
  return descriptors.flatMap((descriptor) => {
    const composite = toCompositeKey(descriptor.key, descriptor.value);
    if (name === composite) return descriptor;
    return name.startsWith(`${composite}.`)
      ? findBelow(descriptor.descriptors, name.slice(composite.length + 1))
      : [];
  });
}
