// Tests what the answers of several control planes mean together, in lines that can be reviewed: verdict.txt describes
// their answers with the words defined below, and has the verdict. `REWRITE=1` writes the current verdicts.
import test from 'ava';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import type { StatusJson } from './status-report.ts';
import { judgeAnswers, type StatusAnswer } from './verdict.ts';

const newest = '2'.repeat(40);
const older = '1'.repeat(40);

const servesOlder = { inForce: { id: older, content: 'one' } };
const invalid = { ...servesOlder, newest: { id: newest, valid: false, problems: [] } };
const rolledOut = { ...servesOlder, rollout: { revision: newest }, verdict: 'pending' };

/** Differences from a control plane that has the newest revision in force on two workers. Words that end in `=` have a
 * value, with `_` in place of blanks. */
const words: Readonly<Record<string, object | ((value: string) => object)>> = {
  nobody: { verdict: 'no_workers', workers: { connected: 0 } },
  unsettled: { settled: false },
  'keeps-older': servesOlder,
  'serves-nothing': { inForce: null },
  'serves-other-rules': { inForce: { id: newest, content: 'other' } },
  'serves=': (id) => ({ inForce: { id: id.repeat(40), content: 'one' } }),
  'newest-is-older': { newest: { id: older, problems: [] } },
  'taken-back': { ...invalid, verdict: 'taken_back', text: 'it was taken back' },
  'held-back': { ...invalid, verdict: 'held_back', text: 'it is held back' },
  'rolled-out': { ...rolledOut, text: 'it is rolled out' },
  leading: {
    ...rolledOut,
    text: 'it is rolled out, as the leader knows it',
    rollout: { revision: newest, leader: { name: 'b', isThis: true } },
  },
  indivisible: { ...rolledOut, verdict: 'held_back', text: 'it waits for an approval' },
  'asked=': (place) => ({ asked: { id: older, place } }),
  'verdict=': (verdict) => ({ verdict }),
  'text=': (text) => ({ text: text.replaceAll('_', ' ') }),
};

/** `NAME [WORD]...`, or `NAME silent`. */
function toAnswer(given: string): StatusAnswer {
  const [name = '', ...own] = given.split(' ');
  const url = `http://${name}`;
  if (own[0] === 'silent') return { url, error: `the admin API at ${url} cannot be reached` };
  const status = Object.assign(
    {
      ...{ verdict: 'in_force', text: 'as it is', asked: null, rollout: null, settled: true },
      newest: { id: newest, valid: true, problems: [] },
      inForce: { id: newest, content: 'two' },
      ...{ controlPlanes: [], workers: { connected: 2 } },
    },
    ...own.map((each) => {
      const [, word = '', value = ''] = /^([^=]+=?)(.*)$/.exec(each) ?? [];
      const known = words[word];
      if (known === undefined) throw new Error(`there is no word '${word}'`);
      return typeof known === 'function' ? known(value) : known;
    }),
  );
  return { url, status: status as unknown as StatusJson };
}

/** `[(revision=ID workers=COUNT approved)] ANSWER ; ANSWER`. */
testLines(test, new URL('verdict.txt', import.meta.url), (given) => {
  const [, asked = '', answers = ''] = /^(?:\((.*?)\) )?(.*)$/.exec(given) ?? [];
  const { outcome, verdict, text } = judgeAnswers(answers.split(' ; ').map(toAnswer), {
    revision: /revision=(\w+)/.exec(asked)?.[1],
    minWorkers: Number(/workers=(\d+)/.exec(asked)?.[1] ?? 1),
    isApproved: asked.includes('approved'),
  });
  return `${outcome}, ${verdict}: ${text}`;
});
