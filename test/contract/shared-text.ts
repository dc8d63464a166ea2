// The contract of texts that control planes share, run by each implementation.
import { randomUUID } from 'node:crypto';
import type { ExecutionContext } from 'ava';
import {
  maxSharedTextBytes,
  type SharedText,
} from '../../control-plane/server/store/shared-text.ts';
import { AppError } from '../../shared/errors.ts';

export interface SharedTextTarget {
  /** Each call uses its own name for the place, as processes on several machines would. */
  open(): SharedText;
  /** An empty place that can be read but not written. */
  openReadOnly(): SharedText;
  /** Makes it unreachable, and reachable again. */
  hide(): void;
  show(): void;
}

export interface SharedTextKind {
  readonly name: string;
  prepare(t: ExecutionContext): SharedTextTarget;
}

/** `test`, or `test.serial` where the places of all tests are behind one server. */
export type DeclareTest = (
  title: string,
  run: (t: ExecutionContext) => Promise<void> | void,
) => void;

export function testSharedText(test: DeclareTest, { name, prepare }: SharedTextKind): void {
  test(`${name}: a text written by one is read by the other`, async (t) => {
    const target = prepare(t);
    const [one, other] = [target.open(), target.open()];
    t.is(await one.read(), undefined);
    const first = await one.swap(undefined, 'first');
    t.is(first.kind, 'written');
    const read = await other.read();
    t.is(read?.text, 'first');
    t.is((await other.swap(read?.version, 'second')).kind, 'written');
    t.is((await one.read())?.text, 'second');
    t.is((await target.open().read())?.text, 'second');
  });

  test(`${name}: a text that is set aside is no longer there, and no version occurs twice`, async (t) => {
    const target = prepare(t);
    const [one, other] = [target.open(), target.open()];
    const first = await one.swap(undefined, 'damaged');
    const version = first.kind === 'written' ? first.version : '';
    t.regex(await one.setAside(version), /unreadable$/);
    t.is(await other.read(), undefined);
    t.is((await other.swap(version, 'late')).kind, 'stale');
    const second = await other.swap(undefined, 'anew');
    t.true(second.kind === 'written' && second.version !== version);
    await one.setAside(version);
    t.is((await one.read())?.text, 'anew');
  });

  test(`${name}: of several simultaneous swaps exactly one succeeds, again and again`, async (t) => {
    const target = prepare(t);
    const texts = Array.from({ length: 4 }, () => target.open());
    let before: string | undefined;
    for (let round = 0; round < 3; round++) {
      const given = texts.map(() => randomUUID());
      const results = await Promise.all(
        texts.map((text, index) => text.swap(before, given[index] ?? '')),
      );
      const winners = results.flatMap(({ kind }, index) => (kind === 'written' ? [index] : []));
      t.is(winners.length, 1, `round ${round}: ${JSON.stringify(results)}`);
      const read = await texts[0]?.read();
      t.is(read?.text, given[winners[0] ?? -1]);
      before = read?.version;
    }
  });

  test(`${name}: a swap of an outdated version is refused, and changes nothing`, async (t) => {
    const target = prepare(t);
    const [one, other] = [target.open(), target.open()];
    const first = await one.swap(undefined, 'first');
    const before = first.kind === 'written' ? first.version : undefined;
    await one.swap(before, 'second');
    const third = await one.swap((await one.read())?.version, 'third');
    t.is(third.kind, 'written');
    t.is((await other.swap(before, 'late')).kind, 'stale');
    t.is((await other.swap(undefined, 'too late')).kind, 'stale');
    t.is((await other.read())?.text, 'third');
  });

  test(`${name}: a place without write permission is reported, and can still be read`, async (t) => {
    const text = prepare(t).openReadOnly();
    const denied = await text.swap(undefined, 'first');
    t.is(denied.kind, 'denied');
    t.true(denied.kind === 'denied' && denied.reason.length > 0);
    t.is(await text.read(), undefined);
  });

  test(`${name}: an unreachable place is not mistaken for an empty one`, async (t) => {
    const target = prepare(t);
    const text = target.open();
    await text.swap(undefined, 'first');
    target.hide();
    await t.throwsAsync(text.read(), { instanceOf: AppError });
    await t.throwsAsync(text.swap('1', 'second'), { instanceOf: AppError });
  });

  test(`${name}: a place that recovers has its previous text, and accepts the next one`, async (t) => {
    const target = prepare(t);
    const text = target.open();
    await text.swap(undefined, 'first');
    target.hide();
    await t.throwsAsync(text.read(), { instanceOf: AppError });
    target.show();
    const read = await text.read();
    t.is(read?.text, 'first');
    t.is((await text.swap(read?.version, 'second')).kind, 'written');
    t.is((await target.open().read())?.text, 'second');
  });

  test(`${name}: a text of the largest size is read as written, a longer one as an empty one`, async (t) => {
    const target = prepare(t);
    const [one, other] = [target.open(), target.open()];
    const largest = 'ä'.repeat(maxSharedTextBytes / 2);
    t.like(await one.swap(undefined, largest), { kind: 'written' });
    const read = await other.read();
    t.true(read?.text === largest);
    t.is((await one.swap(read?.version, `${largest}a`)).kind, 'written');
    const longer = await other.read();
    t.is(longer?.text, '');
    t.regex(await other.setAside(longer?.version ?? ''), /unreadable$/);
    t.is(await one.read(), undefined);
  });
}
