// One domain as the resource for workers, in its two variants (behaviour: fields-of-our-own).
import type { Problem } from '../../shared/rules/problem/problem.ts';
import { problemOf } from '../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { documentsAt } from '../../shared/rules/rule-end.ts';
import { toResource } from '../../shared/rules/wire/resource.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import { createResource, type Resource } from './snapshot.ts';

export type Encode = (message: RateLimitConfigMessage) => Buffer;

export interface DomainResource {
  /** For workers that announce themselves as ours. */
  readonly ours: Resource;
  /** For those of them that cannot end rules by themselves; the same object where both are equal. */
  readonly lasting: Resource;
  /** For all others; the same object where both are equal. */
  readonly others: Resource;
  /** The fields that `others` lacks, such as `descriptors[0].share_threshold`. */
  readonly leftOut: readonly string[];
  /** One for each document with such fields. */
  readonly notes: readonly Problem[];
}

interface Remembered {
  readonly documents: readonly RuleDocument[];
  readonly encode: Encode;
  readonly resource: DomainResource;
}

/** By the first document: few domains change from one revision to the next. */
const remembered = new WeakMap<RuleDocument, Remembered>();

/** The documents of one domain as one resource, named for the domain: it works for workers that do not
 * merge, and a renamed file changes nothing. The same object for the same documents. */
export function toDomainResource(
  domain: string,
  documents: readonly RuleDocument[],
  encode: Encode,
): DomainResource {
  const [first] = documents;
  const known = first && remembered.get(first);
  if (known?.encode === encode && isSame(known.documents, documents)) return known.resource;
  const resource = createDomainResource(domain, documents, encode);
  if (first !== undefined) remembered.set(first, { documents, encode, resource });
  return resource;
}

function isSame(a: readonly RuleDocument[], b: readonly RuleDocument[]): boolean {
  return a.length === b.length && a.every((document, index) => document === b[index]);
}

function createDomainResource(
  domain: string,
  documents: readonly RuleDocument[],
  encode: Encode,
): DomainResource {
  const merged: RuleDocument = {
    file: domain,
    domain,
    position: undefined,
    descriptors: documents.flatMap(({ descriptors }) => descriptors),
  };
  const { leftOut } = toResource(merged, { withOurFields: false });
  // A worker that cannot end a rule by itself would keep it for as long as it reaches no control plane.
  const [endless = merged] = documentsAt([merged], Number.POSITIVE_INFINITY);
  const encodeFor = (document: RuleDocument, withOurFields: boolean) =>
    createResource(domain, encode(toResource(document, { withOurFields }).message));
  const others = encodeFor(endless, false);
  const lasting = unlessEqual(encodeFor(endless, true), others);
  const ours = endless === merged ? lasting : encodeFor(merged, true);
  const notes = leftOut.length === 0 ? [] : documents.flatMap(toNote);
  return { ours, lasting, others, leftOut, notes };
}

function unlessEqual(resource: Resource, other: Resource): Resource {
  return resource.version === other.version ? other : resource;
}

/** At the document's domain. */
function toNote(document: RuleDocument): Problem[] {
  const { leftOut } = toResource(document, { withOurFields: false });
  const [first] = leftOut;
  if (first === undefined) return [];
  const names = [...new Set(leftOut.map((path) => path.slice(path.lastIndexOf('.') + 1)))].sort();
  const endNote = names.includes('until') ? ' them, and no rule with until' : '';
  const count = leftOut.length === 1 ? 'one place' : `${leftOut.length} places`;
  const message = `${names.join(' and ')} of domain '${toExcerpt(document.domain)}' (${count}) cannot be sent to workers that are not Ratelane's; they get the rules without${endNote}`;
  const { position } = document;
  return [
    {
      ...problemOf('note', 'worker-only-field', document.file, message),
      path: first,
      line: position?.line,
      column: position?.column,
      sourceLine: position?.sourceLine,
    },
  ];
}
