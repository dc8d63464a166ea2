// What happens to the hits of a metric key, as lines for review: lost-rules.txt has the rules before and after, and
// metric keys. `REWRITE=1` writes the current results.
import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { checkRules } from '../../authoring/checked-rules.ts';
import { findingLostRules } from './lost-rules.ts';

const limit = 'rate_limit: { unit: day, requests_per_unit: 1 }';
const list = '{ unit: minute, requests_per_unit: 1 }, { unit: day, requests_per_unit: 9 }';

/** `KEY[=VALUE][>KEY][ list|shared]`, where `>` is one level down; `-` for a missing domain. */
function toRules(domain: string, text: string) {
  const rules = text.split(', ').map((each) => {
    const [path = '', how] = each.split(' ');
    const ofRule = how === 'list' ? `rate_limits: [${list}]` : limit;
    return path.split('>').reduceRight((below, level, at, { length }) => {
      const [key, value] = level.split('=');
      const rest = at === length - 1 ? ofRule : `descriptors: [${below}]`;
      return `{ key: ${key}${value ? `, value: '${value}'` : ''}, ${rest}${how === 'shared' ? ', share_threshold: true' : ''} }`;
    }, '');
  });
  const yaml = text === '-' ? 'domain: other' : `domain: ${domain}\ndescriptors: [${rules}]`;
  const { document, problems } = parseRuleDocument(yaml, 'a.yaml');
  const checked = checkRules(document ? [document] : [], { mergeDomains: false });
  if (document === undefined || !checked.ok) throw new Error(JSON.stringify(problems));
  return checked.rules;
}

/** `[DOMAIN: ]RULES -> RULES ? METRIC KEY, METRIC KEY`; the metric keys omit their domain. */
testLines(test, new URL('lost-rules.txt', import.meta.url), (given) => {
  const [, domain = 'shop', before = '', after = '', keys = ''] =
    /^(?:(\S+): )?(.*) -> (.*) \? (.*)$/.exec(given) ?? [];
  const found = runAtOnce(findingLostRules(toRules(domain, before), toRules(domain, after)));
  const lost = [...found.values()][0];
  if (lost === undefined) return 'nothing is lost';
  const fates = keys.split(', ').map((key) => `${key} ${lost.fateOf(`${domain}.${key}`)}`);
  return `${lost.isPure ? '' : 'others are new; '}${fates.join(', ')}`;
});
