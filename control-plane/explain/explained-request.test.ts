import test from 'ava';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { findRulesNow } from '../admin/rules-now.ts';
import { explainRequest } from './explained-request.ts';

test('others have their turn after each descriptor of a request', (t) => {
  const { document } = parseRuleDocument(
    'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]',
    'd.yaml',
  );
  const found =
    document && runAtOnce(findRulesNow({ documents: [document], ruleSet: undefined }, 'd', 0));
  if (found === undefined) return t.fail('the rules are good');
  const descriptors = Array.from({ length: 100 }, (_, index) => [{ key: `k${index}`, value: '' }]);
  const work = explainRequest(found.placed, found.rules, descriptors, 0);
  let turns = 0;
  while (!work.next().done) turns++;
  t.true(turns >= descriptors.length);
});
