// A response in proto3 JSON, for programs: names in camelCase, enums by name, defaults left out.
import { type Unit, unitFromNumber } from '../../shared/rules/unit.ts';
import { trimEnd } from '../../shared/trim-end.ts';
import type {
  DescriptorStatusMessage,
  HeaderValueMessage,
  RateLimitResponseMessage,
} from '../../shared/wire/rate-limit-messages.ts';
import type { StructMessage, ValueMessage } from '../../shared/wire/struct-message.ts';
import { codeNames } from '../decision/message.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json | undefined };

/** One line without its line break. */
export function toResponseJson(response: RateLimitResponseMessage): string {
  const json: Json = {
    overallCode: toCode(response.overallCode),
    statuses: toList(response.statuses, toStatus),
    responseHeadersToAdd: toList(response.responseHeadersToAdd, toHeader),
    requestHeadersToAdd: toList(response.requestHeadersToAdd, toHeader),
    dynamicMetadata: response.dynamicMetadata ? toStruct(response.dynamicMetadata) : undefined,
  };
  return JSON.stringify(json);
}

function toStatus(one: DescriptorStatusMessage): Json {
  const { currentLimit: limit, durationUntilReset: reset } = one;
  return {
    code: toCode(one.code),
    currentLimit: limit
      ? {
          name: limit.name || undefined,
          requestsPerUnit: limit.requestsPerUnit || undefined,
          unit: toUnit(limit.unit ?? 0),
        }
      : undefined,
    limitRemaining: one.limitRemaining || undefined,
    durationUntilReset: reset ? toDuration(reset) : undefined,
  };
}

/** An unknown number stays a number; 0 is the default. */
function toCode(code: number | undefined): Json | undefined {
  return code ? (codeNames[code] ?? code) : undefined;
}

function toUnit(number: number): Json | undefined {
  const unit: Unit | undefined = unitFromNumber(number);
  return number === 0 ? undefined : (unit?.toUpperCase() ?? number);
}

function toDuration(reset: { seconds?: string | number; nanos?: number }): string {
  const fraction = reset.nanos ? `.${trimEnd(String(reset.nanos).padStart(9, '0'), '0')}` : '';
  return `${reset.seconds ?? 0}${fraction}s`;
}

function toHeader({ key, value }: HeaderValueMessage): Json {
  return { key: key || undefined, value: value || undefined };
}

function toList<Item>(
  items: readonly Item[] | undefined,
  toJson: (item: Item) => Json,
): Json | undefined {
  return items?.length ? items.map(toJson) : undefined;
}

function toStruct(struct: StructMessage): Json {
  return Object.fromEntries(
    Object.entries(struct.fields ?? {}).map(([name, value]) => [name, toValue(value)]),
  );
}

function toValue(value: ValueMessage): Json {
  if (value.structValue) return toStruct(value.structValue);
  if (value.listValue) return (value.listValue.values ?? []).map(toValue);
  return value.stringValue ?? value.numberValue ?? value.boolValue ?? null;
}
