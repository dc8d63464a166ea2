// Reads a request of a rule test: its descriptors, its time and the expected answer.
import { toCountText } from '../../../../shared/count-text.ts';
import { parseDuration } from '../../../../shared/duration.ts';
import type { Entry } from '../../../../shared/rules/rule.ts';
import { parseTime, toTimeText } from '../../../../shared/rules/rule-end.ts';
import {
  type LocatedNode,
  type MapReader,
  reportKind,
} from '../../../../shared/rules/yaml/map-reader.ts';
import type { TreeNode } from '../../../../shared/rules/yaml/yaml-node.ts';
import { toExcerpt } from '../../../../shared/text-excerpt.ts';
import type { RateLimitRequest } from '../../../../worker/decision/message.ts';
import { type ExpectedKey, expectedKeys, mostTimes, testKeysAt } from './test-keys.ts';

export interface Ask {
  readonly request: RateLimitRequest;
  /** Wall time in milliseconds. */
  readonly atMs: number;
  readonly times: number;
  readonly expected: readonly AnswerExpectation[];
  readonly offset: number;
}

/** An expected value in the file. */
export interface Expectation {
  readonly name: string;
  /** In the format of the actual value (run-tests.ts); undefined where the key has no value. */
  readonly wanted: string | undefined;
  readonly offset: number;
  readonly path: string;
}

export interface AnswerExpectation extends Expectation {
  readonly name: ExpectedKey;
  /** Index of the descriptor, from 0; undefined for the whole answer. */
  readonly descriptor: number | undefined;
}

/** `domain` applies to requests that name none; undefined where it is unknown, which has been reported. */
export function readAsks(
  requests: readonly MapReader[],
  domain: string | undefined,
  clockMs: number,
): readonly Ask[] {
  let nowMs = clockMs;
  return requests.map((fields) => {
    const ask = readAsk(fields, domain, clockMs, nowMs);
    nowMs = ask.atMs;
    return ask;
  });
}

function readAsk(
  fields: MapReader,
  domain: string | undefined,
  clockMs: number,
  nowMs: number,
): Ask {
  const meant = fields.refuseOthers(testKeysAt('request'));
  const ownDomain = fields.text('domain') || domain;
  if (ownDomain === '' && !meant.has('domain')) {
    const hint = "write 'domain:' beside the name of the test, or in the request";
    fields.errorOfAll('rule-test', 'the request has no domain', hint);
  }
  const descriptors = readDescriptors(fields);
  if (descriptors.length === 0 && meant.size === 0 && !fields.has('descriptor')) {
    const hint = "write its entries: 'descriptor: {customer: ada}'";
    fields.errorOfAll('rule-test', 'the request has no descriptor', hint);
  }
  const hits = readHits(fields);
  const request = {
    domain: ownDomain ?? '',
    hitsAddend: 0,
    descriptors: descriptors.map((entries) => ({
      entries,
      limit: undefined,
      hitsAddend: hits && Math.abs(hits),
      isNegativeHits: hits !== undefined && hits < 0,
    })),
  };
  return {
    request,
    atMs: readMoment(fields, clockMs, nowMs),
    times: fields.count('times', mostTimes, 1) ?? 1,
    expected: readExpected(fields, descriptors.length),
    offset: fields.node.offset,
  };
}

function readDescriptors(fields: MapReader): readonly (readonly Entry[])[] {
  const one = fields.given('descriptor');
  if (one === undefined) {
    return fields.items('descriptors').map((each) => readEntries(each, fields));
  }
  if (fields.has('descriptors')) {
    fields.error('rule-test', 'descriptors', 'descriptor and descriptors exclude each other');
  }
  return [readEntries(one, fields)];
}

function readEntries({ node, path }: LocatedNode, { reporter }: MapReader): readonly Entry[] {
  const maps = node.kind === 'list' ? node.items : [node];
  const entries = maps.flatMap((map) => {
    if (map.kind !== 'map') {
      const wanted = 'a mapping of keys to values';
      reportKind({ node: map, path }, 'a descriptor', wanted, reporter);
      return [];
    }
    return [...map.entries].flatMap(([key, { value }]) => {
      if ('source' in value && value.kind !== 'null') return [{ key, value: value.source }];
      const hint = "an empty value is written as ''";
      reportKind({ node: value, path }, `the value of ${key}`, 'text', reporter, hint);
      return [];
    });
  });
  const isEmpty = maps.every((map) => map.kind === 'map' && map.entries.size === 0);
  if (isEmpty) reporter.error('rule-test', node.offset, path, 'the descriptor has no entries');
  return entries;
}

function readHits(fields: MapReader): number | undefined {
  const node = fields.find('hits');
  if (node === undefined) return undefined;
  const hits = node.kind === 'int' ? Number(node.value) : Number.NaN;
  if (Math.abs(hits) <= Number.MAX_SAFE_INTEGER) return hits;
  return fields.refuse(node, 'hits', 'a whole number');
}

function readMoment(fields: MapReader, clockMs: number, nowMs: number): number {
  const text = fields.text('at') || undefined;
  if (text === undefined) return nowMs;
  const duration = parseDuration(text);
  const atMs = duration.ok ? clockMs + duration.ms : parseTime(text);
  if (atMs === undefined) {
    const message = `at is '${toExcerpt(text)}', neither a duration nor a time`;
    fields.error('rule-test', 'at', message, 'write it as 90s or 2026-01-01T00:01:30Z');
    return nowMs;
  }
  if (atMs >= nowMs) return atMs;
  const message = `at is ${toTimeText(atMs)}, before the request above at ${toTimeText(nowMs)}`;
  fields.error('rule-test', 'at', message, 'at counts from the clock of the test');
  return nowMs;
}

function readExpected(fields: MapReader, descriptorCount: number): readonly AnswerExpectation[] {
  const own = readValues(fields, undefined);
  const isSingle = descriptorCount === 1;
  for (const { name } of own) {
    if (isSingle || descriptorCount === 0 || name === 'code') continue;
    const hint = `expect it of each descriptor: 'statuses: [{${name}: ...}, ...]'`;
    fields.error(
      'rule-test',
      name,
      `${name} is of one descriptor, and there are ${descriptorCount}`,
      hint,
    );
  }
  const statuses = fields.maps('statuses');
  if (statuses.length !== descriptorCount && fields.find('statuses')?.kind === 'list') {
    const message = `${toCountText(statuses.length, 'status', 'statuses')} for ${toCountText(descriptorCount, 'descriptor')}`;
    fields.error('rule-test', 'statuses', message);
  }
  const each = statuses.flatMap((status, index) => {
    status.refuseOthers(testKeysAt('status'));
    return readValues(status, index);
  });
  const ofFirst = own.map((value) => (value.name === 'code' ? value : { ...value, descriptor: 0 }));
  return [...ofFirst, ...each];
}

function readValues(fields: MapReader, descriptor: number | undefined): AnswerExpectation[] {
  return expectedKeys.flatMap((name) => {
    const given = fields.given(name);
    if (given === undefined) return [];
    const { node, path } = given;
    const wanted = node.kind === 'null' ? undefined : readers[name](fields, node);
    return [{ ...toExpectation(name, node, path, wanted), name, descriptor }];
  });
}

export function toExpectation(
  name: string,
  { offset }: TreeNode,
  path: string,
  wanted: string | undefined,
): Expectation {
  return { name, wanted, offset, path };
}

type ReadValue = (fields: MapReader, node: TreeNode) => string | undefined;

const readers: Readonly<Record<ExpectedKey, ReadValue>> = {
  code: (fields) => fields.word('code', ['OK', 'OVER_LIMIT']),
  remaining(fields, node) {
    if ('source' in node && ['none', 'unlimited'].includes(node.source)) return node.source;
    if (node.kind === 'int' && Number(node.value) >= 0) return String(node.value);
    return fields.refuse(node, 'remaining', 'a whole number, none or unlimited');
  },
  reset(fields, node) {
    if ('source' in node && node.source === 'none') return node.source;
    const text = 'source' in node ? node.source : '';
    const duration = parseDuration(text);
    if (duration.ok && duration.ms >= 0 && duration.ms % 1000 === 0) return `${duration.ms / 1000}`;
    const hint = /^\d+$/.test(text) ? `write ${text}s` : undefined;
    return fields.refuse(node, 'reset', 'whole seconds such as 60s, or none', hint);
  },
  rule: (fields, node) => fields.toText(node, 'rule'),
  metric_key: (fields, node) => fields.toText(node, 'metric_key'),
};
