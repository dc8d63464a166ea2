// Converts a RateLimitConfig message to the tree that the readers of rules documents accept, so that a resource passes
// the same checks as a file. A node's offset represents its path.
import type {
  ConfigDescriptorMessage,
  RateLimitConfigMessage,
  RateLimitPolicyMessage,
} from '../../wire/rate-limit-config-message.ts';
import type { StructMessage, ValueMessage } from '../../wire/struct-message.ts';
import { Reporter } from '../problem/reporter.ts';
import { unitFromNumber } from '../unit.ts';
import type {
  ScalarKind,
  TreeEntry,
  TreeList,
  TreeMap,
  TreeNode,
  TreeScalar,
} from '../yaml/yaml-node.ts';
import { publicFlags, unpackMetadata } from './resource-fields.ts';

export interface ResourceTree {
  readonly root: TreeMap;
  /** Contains the problems of parts that the tree cannot express. */
  readonly reporter: Reporter;
}

export function createResourceTree(message: RateLimitConfigMessage, name: string): ResourceTree {
  const paths: string[] = [];
  const reporter = new Reporter(name, {
    position: () => undefined,
    name: (offset) => paths[offset] ?? '',
  });

  /** Undefined members are left out. */
  function toMap(path: string, members: readonly (readonly [string, TreeNode | undefined])[]) {
    const offset = paths.push(path) - 1;
    const entries = new Map<string, TreeEntry>();
    for (const [key, value] of members) {
      if (value !== undefined) entries.set(key, { key: toScalar('text', key, key, offset), value });
    }
    return { kind: 'map', entries, offset } satisfies TreeMap;
  }

  function toItems<T>(
    items: readonly T[] | undefined,
    path: string,
    toItem: (item: T, itemPath: string) => TreeNode,
  ): TreeList | undefined {
    if (items === undefined || items.length === 0) return undefined;
    const offset = paths.push(path) - 1;
    return {
      kind: 'list',
      items: items.map((item, index) => toItem(item, `${path}[${index}]`)),
      offset,
    };
  }

  function toDescriptor(descriptor: ConfigDescriptorMessage, path: string): TreeMap {
    const { key, value, rateLimit, descriptors } = descriptor;
    const { metadata, fields } = unpackMetadata(descriptor.metadata, path, reporter);
    const withoutLimit = new Map(fields);
    // Our extensions contain the whole list; the public message has only its first limit.
    const isListed = withoutLimit.has('rate_limits');
    const shape = withoutLimit.get('rate_limit')?.structValue?.fields;
    withoutLimit.delete('rate_limit');
    const limitPath = `${path}.rate_limit`;
    return toMap(path, [
      ['key', toText(key)],
      ['value', toText(value)],
      ['rate_limit', rateLimit && !isListed ? toPolicy(rateLimit, limitPath, shape) : undefined],
      ...publicFlags.map(({ name, property }) => [name, toFlag(descriptor[property])] as const),
      ...[...withoutLimit].map(
        ([name, field]) => [name, toValue(field, `${path}.${name}`)] satisfies [string, TreeNode],
      ),
      ['metadata', metadata && toStruct(metadata, `${path}.metadata`)],
      ['descriptors', toItems(descriptors, `${path}.descriptors`, toDescriptor)],
    ]);
  }

  /** `shape` has our extensions that belong to the limit. */
  function toPolicy(
    policy: RateLimitPolicyMessage,
    path: string,
    shape: StructMessage['fields'] = {},
  ): TreeMap {
    const { unit = 0, requestsPerUnit = 0, unlimited = false, name, replaces } = policy;
    return toMap(path, [
      ['unit', unlimited && unit === 0 ? undefined : toText(toUnitText(unit))],
      // Absent and 0 are the same on the wire (behaviour: missing-requests-per-unit).
      ['requests_per_unit', toScalar('int', requestsPerUnit, String(requestsPerUnit))],
      ...Object.entries(shape ?? {}).map(
        ([key, value]) => [key, toValue(value, `${path}.${key}`)] satisfies [string, TreeNode],
      ),
      ['unlimited', toFlag(unlimited)],
      ['name', toText(name)],
      [
        'replaces',
        toItems(replaces, `${path}.replaces`, (item, itemPath) =>
          toMap(itemPath, [['name', toText(item.name)]]),
        ),
      ],
    ]);
  }

  function toStruct(struct: StructMessage, path: string): TreeMap {
    const members = Object.entries(struct.fields ?? {});
    return toMap(
      path,
      members.map(([name, value]) => [name, toValue(value, `${path}.${name}`)]),
    );
  }

  function toValue(value: ValueMessage, path: string): TreeNode {
    const { stringValue, numberValue, boolValue, structValue, listValue } = value;
    if (stringValue !== undefined) return toText(stringValue) ?? toScalar('text', '', '');
    if (numberValue !== undefined) {
      const kind = Number.isInteger(numberValue) ? 'int' : 'float';
      return toScalar(kind, numberValue, String(numberValue));
    }
    if (boolValue !== undefined) return toScalar('bool', boolValue, String(boolValue));
    if (structValue !== undefined) return toStruct(structValue, path);
    if (listValue === undefined) return toScalar('null', null, 'null');
    const empty: TreeList = { kind: 'list', items: [], offset: 0 };
    return toItems(listValue.values, path, toValue) ?? empty;
  }

  const root = toMap('', [
    ['domain', toText(message.domain)],
    ['descriptors', toItems(message.descriptors, 'descriptors', toDescriptor)],
  ]);
  return { root, reporter };
}

/** Unknown numbers are retained, so that the readers' messages name them as they were sent. */
function toUnitText(unit: number): string {
  return unit === 0 ? 'UNKNOWN' : (unitFromNumber(unit) ?? String(unit));
}

function toText(text: string | undefined): TreeScalar | undefined {
  return text ? toScalar('text', text, text) : undefined;
}

function toFlag(flag: boolean | undefined): TreeScalar | undefined {
  return flag ? toScalar('bool', true, 'true') : undefined;
}

function toScalar(
  kind: ScalarKind,
  value: TreeScalar['value'],
  source: string,
  offset = 0,
): TreeScalar {
  return { kind, value, source, isQuoted: false, offset };
}
