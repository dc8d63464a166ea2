// Converts rules documents to a management server's resources and back, without loss. resource-fields.ts has the fields
// beside the public message.
import type {
  ConfigDescriptorMessage,
  RateLimitConfigMessage,
  RateLimitPolicyMessage,
} from '../../wire/rate-limit-config-message.ts';
import { type ParsedDocument, readRuleDocument } from '../document/document.ts';
import type { RateLimitBlock, RuleDescriptor, RuleDocument } from '../rule-document.ts';
import { unitNumbers } from '../unit.ts';
import {
  listExtensions,
  packMetadata,
  publicFlags,
  toExtensions,
  toStruct,
} from './resource-fields.ts';
import { createResourceTree } from './resource-tree.ts';

export interface ResourceOptions {
  /** Includes the fields that the public message lacks; only for workers that announce support (behaviour:
   * fields-of-our-own). */
  readonly withExtensions: boolean;
}

export interface Resource {
  /** Default values are left out, so that equal rules have equal bytes. */
  readonly message: RateLimitConfigMessage;
  /** The fields that were not sent, such as `descriptors[0].share_threshold`. */
  readonly leftOut: readonly string[];
}

/** The document's `file` becomes the resource's name. */
export function toResource(document: RuleDocument, options: ResourceOptions): Resource {
  const leftOut: string[] = [];

  function toDescriptors(
    descriptors: readonly RuleDescriptor[],
    path: string,
  ): Pick<ConfigDescriptorMessage, 'descriptors'> {
    if (descriptors.length === 0) return {};
    return {
      descriptors: descriptors.map((each, index) => toDescriptor(each, `${path}[${index}]`)),
    };
  }

  function toDescriptor(descriptor: RuleDescriptor, path: string): ConfigDescriptorMessage {
    const { key, value, rateLimit, descriptors } = descriptor;
    const fields = listExtensions(descriptor);
    if (!options.withExtensions) leftOut.push(...fields.map((name) => `${path}.${name}`));
    const metadata = options.withExtensions
      ? packMetadata(descriptor.metadata, toExtensions(descriptor))
      : descriptor.metadata && toStruct(descriptor.metadata);
    return {
      key,
      ...(value !== '' && { value }),
      ...(rateLimit && { rateLimit: toPolicy(rateLimit) }),
      ...toDescriptors(descriptors, `${path}.descriptors`),
      ...Object.fromEntries(
        publicFlags.flatMap(({ property }) => (descriptor[property] ? [[property, true]] : [])),
      ),
      ...(metadata && { metadata }),
    };
  }

  const { file, domain, descriptors } = document;
  const message = { name: file, domain, ...toDescriptors(descriptors, 'descriptors') };
  return { message, leftOut };
}

function toPolicy(limit: RateLimitBlock): RateLimitPolicyMessage {
  const { unit, requestsPerUnit, unlimited, name, replaces } = limit;
  return {
    ...(unit !== undefined && { unit: unitNumbers[unit] }),
    ...(requestsPerUnit !== 0 && { requestsPerUnit }),
    ...(unlimited && { unlimited }),
    ...(name !== '' && { name }),
    ...(replaces.length > 0 && { replaces: replaces.map((each) => ({ name: each.name })) }),
  };
}

/**
 * The document of a resource; `name` is its name in messages, and becomes its `file`. Checked like a file,
 * with paths instead of lines in problems. A missing requests_per_unit is 0 (behaviour:
 * missing-requests-per-unit).
 */
export function fromResource(message: RateLimitConfigMessage, name: string): ParsedDocument {
  const { root, reporter } = createResourceTree(message, name);
  const document = readRuleDocument(root, name, reporter);
  return { document: reporter.hasErrors ? undefined : document, problems: reporter.toProblems() };
}
