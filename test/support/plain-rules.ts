// A limit, and a descriptor of a rule, as they are where nothing else is declared.
import { plainShape } from '../../shared/rules/limit-shape.ts';
import type { Limit } from '../../shared/rules/rule.ts';
import type { RateLimitBlock, RuleDescriptor } from '../../shared/rules/rule-document.ts';
import { noFlags, noModes } from '../../shared/rules/rule-keys.ts';

const rate = { ...plainShape, unit: 'minute', requestsPerUnit: 1, unlimited: false } as const;

export const plainLimit: Limit = {
  ...{ ...rate, name: '', replaces: [], limiter: undefined, counterTag: '' },
  ...{ ...noModes, metadata: undefined },
};

export const plainRateLimit: RateLimitBlock = { ...rate, name: '', replaces: [] };

export const plainDescriptor: RuleDescriptor = {
  ...{ key: '', value: '', rateLimit: undefined, furtherLimits: [], untilMs: undefined },
  ...{ ...noFlags, metadata: undefined, descriptors: [], position: undefined },
};
