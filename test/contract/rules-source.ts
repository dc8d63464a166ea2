// What every source of rules must do, as one suite: each implementation runs it from its own test file. Behaviour of a
// single implementation (files, a server's conversation) is tested there.
import type { ExecutionContext, TestFn } from 'ava';
import type { LoadResult, RulesSource } from '../../worker/rules-source/source.ts';
import { eventually } from '../support/eventually.ts';

/** A limit for key `k` of each domain; `bad` is a rule that no source may put in force. */
export type Limits = Readonly<Record<string, number | 'bad'>>;

export interface SourceUnderTest {
  readonly source: RulesSource;
  /** Makes these the rules that the source delivers, replacing all earlier ones. */
  put(limits: Limits): void;
}

export interface RulesSourceSuite {
  /** The prefix of the titles. */
  readonly name: string;
  /** A source that has not been started, and has these rules to deliver. */
  open(t: ExecutionContext, limits: Limits): Promise<SourceUnderTest>;
}

export function testRulesSource(test: TestFn, suite: RulesSourceSuite): void {
  const check = (title: string, run: (t: ExecutionContext) => Promise<void>) =>
    test(`${suite.name}: ${title}`, run);

  async function start(t: ExecutionContext, first: Limits) {
    const loads: LoadResult[] = [];
    const { source, put } = await suite.open(t, first);
    t.teardown(() => source.close());
    await source.start((result) => loads.push(result));
    await eventually('a first load', () => loads.length > 0);
    return {
      source,
      put,
      loads,
      becomes: (wanted: Limits) =>
        eventually(JSON.stringify(wanted), () => {
          const last = loads.at(-1);
          return last?.ok === true && isExactly(last, wanted);
        }),
      fails: (count: number) =>
        eventually('a failed load', () => loads.length > count && loads.at(-1)?.ok === false),
    };
  }

  check('the first rules are delivered completely', async (t) => {
    const { loads } = await start(t, { a: 1, b: 2 });
    const [first] = loads;
    t.true(first?.ok === true && isExactly(first, { a: 1, b: 2 }));
    t.not(first?.origin, '');
  });

  check('no rules at all are a good load', async (t) => {
    const { loads } = await start(t, {});
    const [first] = loads;
    t.true(first?.ok === true && isExactly(first, {}));
  });

  check('each change is delivered, with additions and removals', async (t) => {
    const { put, becomes, loads } = await start(t, { a: 1, b: 2 });
    put({ a: 3, b: 2 });
    await becomes({ a: 3, b: 2 });
    put({ b: 2, c: 4 });
    await becomes({ b: 2, c: 4 });
    put({ c: 4 });
    await becomes({ c: 4 });
    t.true(loads.every(({ ok }) => ok));
  });

  check('invalid rules are a failed load with problems, their repair a good one', async (t) => {
    const { put, loads, fails, becomes } = await start(t, { a: 'bad' });
    const [first] = loads;
    t.false(first?.ok);
    const problems = first?.ok === false ? first.problems : [];
    t.true(problems.some(({ path }) => path === 'descriptors[0].rate_limit.unit'));
    put({ a: 1 });
    await becomes({ a: 1 });
    const before = loads.length;
    put({ a: 'bad' });
    await fails(before);
    put({ a: 2 });
    await becomes({ a: 2 });
  });

  check('the awaited event, or the rules in force, can be reported at any time', async (t) => {
    const { source } = await suite.open(t, { a: 1 });
    t.teardown(() => source.close());
    t.not(source.describe(), '');
    let loads = 0;
    await source.start(() => loads++);
    await eventually('a first load', () => loads > 0);
    t.not(source.describe(), '');
    await source.close();
    t.not(source.describe(), '');
  });

  check('after close, called once or twice, it delivers nothing', async (t) => {
    const { source, put, loads } = await start(t, { a: 1 });
    await source.close();
    await source.close();
    const delivered = loads.length;
    put({ a: 2 });
    // As long as another source of the same kind takes to deliver its rules.
    await start(t, { a: 3 });
    t.is(loads.length, delivered);
  });

  check('a source that was never started can be closed', async (t) => {
    const { source } = await suite.open(t, { a: 1 });
    await t.notThrowsAsync(() => source.close());
  });
}

function isExactly({ ruleSet }: LoadResult & { readonly ok: true }, limits: Limits): boolean {
  const wanted = Object.entries(limits);
  return (
    ruleSet.domains.size === wanted.length &&
    wanted.every(([domain, limit]) => {
      const match = ruleSet.domains.get(domain)?.match([{ key: 'k', value: 'v' }]);
      return match?.limit.requestsPerUnit === limit;
    })
  );
}
