// The entry that one action of Envoy's `rate_limits` adds to a descriptor: its key, and its value where that does
// not depend on the request.
import type { SoughtEntry } from '../../../shared/rules/lookup/possible-rules.ts';
import type { TreeMap } from '../../../shared/rules/yaml/yaml-node.ts';
import { fieldOf, isTrue, mapOf, textOf } from './envoy-fields.ts';

export interface ActionEntry extends SoughtEntry {
  /** Omitted from the descriptor when the request has nothing for it. */
  readonly isOptional: boolean;
  /** Position of the action in its file. */
  readonly offset: number;
}

interface ActionKind {
  /** The key without `descriptor_key`; undefined where that is required. */
  readonly key: string | undefined;
  /** Whether `descriptor_value` is sent. */
  readonly isFixed: boolean;
}

const kinds: ReadonlyMap<string, ActionKind> = new Map([
  ['source_cluster', { key: 'source_cluster', isFixed: false }],
  ['destination_cluster', { key: 'destination_cluster', isFixed: false }],
  ['remote_address', { key: 'remote_address', isFixed: false }],
  ['masked_remote_address', { key: 'masked_remote_address', isFixed: false }],
  ['request_headers', { key: undefined, isFixed: false }],
  ['query_parameters', { key: undefined, isFixed: false }],
  ['metadata', { key: undefined, isFixed: false }],
  ['dynamic_metadata', { key: undefined, isFixed: false }],
  ['generic_key', { key: 'generic_key', isFixed: true }],
  ['header_value_match', { key: 'header_match', isFixed: true }],
  ['query_parameter_value_match', { key: 'query_match', isFixed: true }],
  ['remote_address_match', { key: 'remote_address_match', isFixed: true }],
]);

/** `cluster`: the route's cluster, if known. Undefined for an unknown action. */
export function toEntry(action: TreeMap, cluster: string | undefined): ActionEntry | undefined {
  const { offset } = action;
  for (const [name, kind] of kinds) {
    if (fieldOf(action, name) === undefined) continue;
    const map = mapOf(action, name);
    // Such as `remote_address: {}`, which may also be written without braces.
    const key = (map && textOf(map, 'descriptor_key')) || kind.key;
    if (key === undefined) return undefined;
    const fixed = kind.isFixed && map ? toFixedValue(textOf(map, 'descriptor_value')) : undefined;
    return {
      key,
      value: name === 'destination_cluster' ? cluster : fixed,
      isOptional: map !== undefined && isTrue(map, 'skip_if_absent'),
      offset,
    };
  }
  const extension = mapOf(action, 'extension');
  const config = extension && mapOf(extension, 'typed_config');
  const key = config ? textOf(config, 'descriptor_key') : '';
  if (config === undefined || key === '') return undefined;
  return { key, value: undefined, isOptional: isTrue(config, 'skip_if_error'), offset };
}

/** Undefined where Envoy may substitute parts of the request (`%REQ(...)%`), which only some fields allow. */
function toFixedValue(text: string): string | undefined {
  return text.includes('%') ? undefined : text;
}
