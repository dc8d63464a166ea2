// Reads nonsensical files of recorded decisions: each line is a record that can be replayed, or is omitted.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { openRecordedDecisions } from '../../control-plane/authoring/rehearsal/replay/recorded-decisions.ts';
import { Replay } from '../../control-plane/authoring/rehearsal/replay/replay.ts';
import { createRulesInTime } from '../../control-plane/authoring/rehearsal/rules-in-time.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { damageText } from './damage.ts';
import { fuzz } from './fuzz-run.ts';

const text = `{"decisions":1,"time":1764064800000,"instance":"i","rate":0.5,"hashed_keys":["b"],"settings":{"week_reset_day":4,"calendar_months":true,"shadow_mode":false,"quota_mode":false,"stop_increment_when_over_limit":true}}
{"time":1764064800123,"domain":"d","descriptors":[{"entries":[{"key":"a","value":"x"}]},{"entries":[{"key":"b","value":"y"}],"hits_addend":"9007199254740993","limit":{"requests_per_unit":5,"unit":2},"is_negative_hits":true}],"hits_addend":3,"code":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","rule":"d.a"},{"code":"OK","sampled":false}]}
{"time":1764064801123,"domain":"d","descriptors":[{"entries":[{"key":"a","value":"x"}]}],"code":"ERROR"}
{"dropped":120,"from":1764064800000,"time":1764064801000}
{"time":1764064800999,"domain":"d","descriptors":[{"entries":[{"key":"a","value":"z"}],"hits_addend":0}],"code":"OK","statuses":[{"code":"OK","fallback":"allow"}]}
`;
const words = [
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\n',
    'null',
    'true',
    '-1',
    '0',
    '1e400',
    '8.64e15',
    '0.5',
  ],
  ...['"time":', '"domain":', '"entries":', '"statuses":[', '"hits_addend":', '\u0000', '\ufffd'],
];

test('any file of recorded decisions is replayed, or its lines are omitted', async (t) => {
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'decisions');
  const { document } = parseRuleDocument(
    'domain: d\ndescriptors: [{key: a, rate_limit: {unit: month, requests_per_unit: 3}}]\n',
    'rules.yaml',
  );
  const rules = createRulesInTime(document ? [document] : [], {
    mergeDomains: false,
    sanitizeMetricDots: false,
  });
  let [replayed, leftOut] = [0, 0];
  await fuzz(t, 'files of recorded decisions', async (random) => {
    const damaged = damageText(random, text, words);
    writeFileSync(path, damaged);
    const opened = await openRecordedDecisions([path]);
    if (!opened.ok) throw new Error(opened.message);
    const { batches, reading } = opened.recorded;
    for await (const batch of batches) {
      const startMs = batch[0]?.time ?? 0;
      const recordedBy = reading.headers[0]?.settings;
      const replay = new Replay({ rules, against: undefined, recordedBy, startMs });
      for (const decision of batch) replay.receive(decision);
      const { decisions, failed, undecided } = replay.summary();
      if (decisions + failed + undecided !== batch.length) throw new Error('a decision is lost');
      replayed += decisions;
    }
    leftOut += reading.leftOutCount;
    const lines = damaged.split('\n').length - (damaged.endsWith('\n') ? 1 : 0);
    if (reading.decisions + reading.leftOutCount > lines) throw new Error('more than there is');
  });
  t.log(`${replayed} replayed, ${leftOut} lines left out`);
  t.true(replayed > 0 && leftOut > 0);
});
