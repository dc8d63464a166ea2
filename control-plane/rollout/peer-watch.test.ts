import test from 'ava';
import type { PeerAnswer } from '../peers/peers.ts';
import type { RolloutFacts } from './facts.ts';
import { askNow, forgetAnswers, noAnswers, noteAnswers, readAnswers } from './peer-watch.ts';

const answer = (record: string): PeerAnswer<RolloutFacts> => ({
  url: 'http://b',
  value: { record, serves: record, workers: [], gone: [] },
});
const away: PeerAnswer<RolloutFacts> = { url: 'http://c', error: 'HTTP 503', last: undefined };
const asked = askNow(noAnswers);
const answersTo = (question: number, ...answers: PeerAnswer<RolloutFacts>[]) => ({
  ...{ question, askedAtMs: 7, contentId: 'r', answers },
});
const waits = 'waits for the answers of its peers';

test('nothing is known of peers before their first answer, which is as old as its question', (t) => {
  for (const each of [noAnswers, asked]) {
    const { unknown, askedAtMs } = readAnswers(each, 'r');
    t.deepEqual([unknown, askedAtMs], [waits, Number.NEGATIVE_INFINITY]);
  }
  const { peers } = noteAnswers(asked, answersTo(1, answer('r')));
  t.is(peers.asking, undefined);
  t.like(readAnswers(peers, 'r'), { unknown: undefined, askedAtMs: 7 });
  t.regex(readAnswers(peers, 'another').unknown ?? '', /waits for peer http:\/\/b to follow/);
});

test("a peer's record is noted where it differs from the own one", (t) => {
  const { news } = noteAnswers(asked, answersTo(1, answer('r'), answer('newer'), away));
  t.deepEqual(news, ['newer']);
});

test('answers to questions from before are forgotten', (t) => {
  const { peers } = noteAnswers(asked, answersTo(1, answer('r')));
  const again = askNow(forgetAnswers(askNow(peers)));
  t.is(readAnswers(again, 'r').unknown, waits);
  const late = noteAnswers(again, answersTo(2, answer('late')));
  t.deepEqual([readAnswers(late.peers, 'r').unknown, late.news], [waits, []]);
  const now = noteAnswers(late.peers, answersTo(3, answer('r')));
  t.is(readAnswers(now.peers, 'r').unknown, undefined);
});
