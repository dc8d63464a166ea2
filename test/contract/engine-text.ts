// The contract of a shared text in an engine, in addition to that of all shared texts and of the record in them: waits
// are bounded, and error messages name the setting and the host, but never a secret.
import { randomUUID } from 'node:crypto';
import type { ExecutionContext, TestFn } from 'ava';
import type { SharedText } from '../../control-plane/server/store/shared-text.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { testRecordKeeper } from './record-keeper.ts';
import { testRecordKills } from './record-kills.ts';
import { type DeclareTest, type SharedTextTarget, testSharedText } from './shared-text.ts';

interface EngineTexts extends Pick<SharedTextTarget, 'open' | 'openReadOnly'> {
  /** Like `open`, but its calls end after this time. */
  openFor(timeoutMs: number): SharedText;
  /** Opens with a secret that the engine does not accept. */
  openWithSecret(secret: string): SharedText;
}

interface EngineKind {
  readonly name: string;
  prepare(t: ExecutionContext): EngineTarget;
}

interface EngineTarget extends EngineTexts, SharedTextTarget {
  /** The `host:port` that `open` connects to. */
  readonly address: string;
  /** Accepts connections but does not answer, until `show` is called. */
  stall(): void;
}

/** All contracts of an engine whose server is reached through the proxy. */
export function testEngine(
  test: TestFn,
  name: string,
  engine: () => { readonly server: { readonly port: number }; readonly proxy: TcpProxy },
  openTexts: (name: string, t: ExecutionContext) => EngineTexts,
): void {
  const prepare = (t: ExecutionContext): EngineTarget => {
    const { server, proxy } = engine();
    const show = () => {
      proxy.retarget(server.port);
      proxy.heal();
    };
    t.teardown(show);
    return {
      ...openTexts(randomUUID(), t),
      address: `127.0.0.1:${proxy.port}`,
      // Nothing listens there.
      hide: () => proxy.retarget(1),
      stall: () => proxy.inject({ kind: 'stall' }),
      show,
    };
  };
  const kind = { name, prepare };
  testSharedText(test.serial, kind);
  testEngineText(test.serial, kind);
  testRecordKeeper(test.serial, kind);
  testRecordKills(test.serial, kind);
}

function testEngineText(test: DeclareTest, { name, prepare }: EngineKind): void {
  test(`${name}: a call to an engine that does not answer ends in time, and the engine is used again once it answers`, async (t) => {
    const target = prepare(t);
    await target.open().swap(undefined, 'first');
    const text = target.openFor(300);
    target.stall();
    for (const call of [() => text.read(), () => text.swap('1', 'b'), () => text.setAside('1')])
      await t.throwsAsync(call(), { instanceOf: AppError, message: 'no answer within 300 ms' });
    target.show();
    t.is((await target.open().read())?.text, 'first');
  });

  test(`${name}: a control plane that stops does not wait for it`, async (t) => {
    const target = prepare(t);
    const text = target.open();
    target.stall();
    const read = text.read();
    text.close();
    await t.throwsAsync(read, { instanceOf: AppError, message: 'the control plane stops' });
    await t.throwsAsync(text.read(), { instanceOf: AppError });
  });

  test(`${name}: messages name the setting and the host, and no secret`, async (t) => {
    const target = prepare(t);
    const secret = 'sesame-0123456789';
    const text = target.openWithSecret(secret);
    t.true(text.description.includes(target.address), text.description);
    t.true(text.description.includes('--record'), text.description);
    for (const call of [() => text.read(), () => text.swap(undefined, 'a')]) {
      const error = await t.throwsAsync(call(), { instanceOf: AppError });
      t.notRegex(`${text.description} ${errorText(error)}`, /sesame/);
    }
  });
}
