// Writes a decision's answer in the proto3 JSON form: fields by number, defaults left out, enums by name
// (behaviour: json-endpoint).
import type { JsonValue } from '../../shared/rules/rule.ts';
import {
  codeNames,
  type DescriptorStatus,
  type Header,
  type RateLimitResponse,
} from '../decision/message.ts';

/** Undefined when the dynamic metadata has a number that JSON cannot express. */
export function toJsonResponse(response: RateLimitResponse): string | undefined {
  const { statuses, responseHeadersToAdd, requestHeadersToAdd, dynamicMetadata } = response;
  if (dynamicMetadata !== undefined && !isWritable(dynamicMetadata)) return undefined;
  return JSON.stringify({
    overallCode: codeNames[response.overallCode],
    ...listUnlessEmpty('statuses', statuses.map(toJsonStatus)),
    ...listUnlessEmpty('responseHeadersToAdd', responseHeadersToAdd.map(toJsonHeader)),
    ...listUnlessEmpty('requestHeadersToAdd', requestHeadersToAdd.map(toJsonHeader)),
    ...(dynamicMetadata === undefined ? {} : { dynamicMetadata }),
  });
}

function listUnlessEmpty(name: string, items: readonly object[]): object {
  return items.length === 0 ? {} : { [name]: items };
}

function toJsonStatus(status: DescriptorStatus): object {
  const { currentLimit, limitRemaining, secondsUntilReset } = status;
  return {
    code: codeNames[status.code],
    ...(currentLimit === undefined
      ? {}
      : {
          currentLimit: {
            ...(currentLimit.name === '' ? {} : { name: currentLimit.name }),
            ...(currentLimit.requestsPerUnit === 0
              ? {}
              : { requestsPerUnit: currentLimit.requestsPerUnit }),
            unit: currentLimit.unit.toUpperCase(),
          },
        }),
    ...(limitRemaining === 0 ? {} : { limitRemaining }),
    ...(secondsUntilReset === undefined ? {} : { durationUntilReset: `${secondsUntilReset}s` }),
  };
}

function toJsonHeader({ key, value }: Header): object {
  return { ...(key === '' ? {} : { key }), ...(value === '' ? {} : { value }) };
}

function isWritable(value: JsonValue): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every(isWritable);
}
