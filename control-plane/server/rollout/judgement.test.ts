// Judgements of figures, as lines for review: judgements.txt lists workers in the words that are defined below, and the
// judgement of them. `REWRITE=1` rewrites the judgements.
import test from 'ava';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { type Compared, type CountedWorker, type Figures, judgeAll } from './judgement.ts';

/** Parses `of=REQUESTS WITHOUT ERRORS errors=N over=N no-match=N gone=N`, and by domain `NAME=OVER
 * LIMIT/HITS[/ERRORS/WITHOUT A RULE[/OF RULES THAT GO]]`. */
function toFigures(words: readonly string[]): Figures {
  const counts = new Map(words.map((word) => word.split('=') as [string, string]));
  const domains = [...counts].flatMap(([name, text]) => {
    const [overLimit, hits, errors, noMatch, gone = 0] = text.split('/').map(Number);
    if (overLimit === undefined || hits === undefined) return [];
    const isReported = errors !== undefined && noMatch !== undefined;
    return [[name, { overLimit, hits, ...(isReported && { errors, noMatch, gone }) }] as const];
  });
  const countOf = (name: string) => Number(counts.get(name) ?? 0);
  return {
    decisions: counts.has('of') ? countOf('of') : 1_000 - countOf('errors'),
    errors: countOf('errors'),
    overLimit: countOf('over'),
    noMatch: countOf('no-match'),
    gone: countOf('gone'),
    domains: new Map(domains),
  };
}

/** Parses `[COUNT*]NAME FIGURES [away] [before FIGURES]`, any number of times. */
function toWorkers(text: string): CountedWorker[] {
  return text.split(', ').flatMap((each) => {
    const [known = '', ...words] = each.trim().split(' ');
    if (known === '') return [];
    const [name = '', count = '1'] = known.split('*').toReversed();
    const at = words.indexOf('before');
    const now = words.slice(0, at === -1 ? words.length : at).filter((word) => word !== 'away');
    const worker = {
      ...toFigures(now),
      before: at === -1 ? undefined : toFigures(words.slice(at + 1)),
      storeAway: words.includes('away') ? 'redis' : undefined,
    };
    return Array.from({ length: Number(count) }, (_, index) => ({
      ...worker,
      name: count === '1' ? name : `${name}${index}`,
    }));
  });
}

/** Parses `[NAME: ]WORKERS WITH IT beside WORKERS WITHOUT IT`. */
function toGroup(text: string): Compared {
  const [, name, sides = ''] = /^(?:([\w ]+): )?(.*)$/.exec(text) ?? [];
  const [having = '', others = ''] = ` ${sides} `.split(' beside ');
  return { name, having: toWorkers(having), others: toWorkers(others) };
}

testLines(test, new URL('judgements.txt', import.meta.url), (given) => {
  const [, bound, isEarly, groups = ''] =
    /^(?:\(bound (\d+)\) )?(\(early\) )?(.*)$/.exec(given) ?? [];
  const { kind, text } = judgeAll(
    groups.split(' / ').map(toGroup),
    Number(bound ?? 10),
    isEarly === undefined,
  );
  return `${kind}: ${text}`;
});
