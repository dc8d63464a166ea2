// Converts node messages to the identity that the control plane uses.
import type { NodeMessage } from '../../../shared/wire/discovery-messages.ts';
import type { StructMessage, ValueMessage } from '../../../shared/wire/struct-message.ts';
import type { NodeIdentity } from '../snapshot/snapshot.ts';
import { maxNodeLength } from './limits.ts';

/** Undefined when the message exceeds the limit of a stream. */
export function toNodeIdentity(node: NodeMessage | null | undefined): NodeIdentity | undefined {
  const { id = '', cluster = '' } = node ?? {};
  const metadata = toTexts(node?.metadata);
  let length = id.length + cluster.length;
  for (const [name, text] of metadata) length += name.length + text.length;
  return length > maxNodeLength ? undefined : { id, cluster, metadata };
}

function toTexts(struct: StructMessage | null | undefined): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const [name, value] of Object.entries(struct?.fields ?? {})) {
    const text = toText(value);
    if (text !== undefined) texts.set(name, text);
  }
  return texts;
}

function toText(value: ValueMessage): string | undefined {
  switch (value.kind) {
    case 'stringValue':
      return value.stringValue;
    case 'numberValue':
      return String(value.numberValue);
    case 'boolValue':
      return String(value.boolValue);
    default:
      return undefined;
  }
}
