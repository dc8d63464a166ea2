// A text that control planes share in etcd, over the JSON gateway of its v3 API: one key, replaced by a transaction
// that compares its revision.
import Type, { type Static, type TSchema } from 'typebox';
import { AppError } from '../../../../shared/errors.ts';
import { redact } from '../../../../shared/redact.ts';
import type { ComparedClocks } from '../../compared-clocks.ts';
import type { JsonAnswer } from '../../json-call.ts';
import { asideSuffix } from '../../store/set-aside.ts';
import type { SwapResult } from '../../store/shared-text.ts';
import {
  callEngine,
  type EngineAccess,
  readAnswer,
  readEnginePassword,
  readEngineTls,
  showFailure,
} from './engine-access.ts';
import { EngineText, engineTimeoutMs, type Found } from './engine-text.ts';

export interface EtcdAddress {
  readonly kind: 'etcd';
  /** The endpoints of one cluster's members; if one does not answer, the next one is called. */
  readonly endpoints: readonly URL[];
  readonly username: string | undefined;
}

const rangeAnswer = Type.Object({
  kvs: Type.Optional(
    Type.Array(Type.Object({ mod_revision: Type.String(), value: Type.Optional(Type.String()) })),
  ),
});
const transactionAnswer = Type.Object({
  header: Type.Object({ revision: Type.String() }),
  succeeded: Type.Optional(Type.Boolean()),
});
const loginAnswer = Type.Object({ token: Type.String() });

/** The member responds but rejects writes: a user without the permission, no space left. */
const denials = [403, 429];

export class EtcdSharedText extends EngineText<AbortSignal> {
  readonly #address: EtcdAddress;
  readonly #key: string;
  readonly #access: EngineAccess;
  readonly #clocks: ComparedClocks | undefined;
  /** The number of calls without an answer, which determines the endpoint to call. */
  #failures = 0;
  /** The user's token from etcd; undefined before the login. */
  #token: string | undefined;

  /** `name` distinguishes the records of several fleets in one etcd. */
  constructor(
    address: EtcdAddress,
    name: string,
    access: EngineAccess,
    timeoutMs = engineTimeoutMs,
    clocks?: ComparedClocks,
  ) {
    const key = `ratelane/record/${name}`;
    const hosts = address.endpoints.map(({ host }) => host).join(', ');
    super(`${key} in etcd at ${hosts}`, key + asideSuffix, timeoutMs);
    this.#address = address;
    this.#key = key;
    this.#access = access;
    this.#clocks = clocks;
  }

  protected open<Result>(signal: AbortSignal, use: (signal: AbortSignal) => Promise<Result>) {
    return use(signal);
  }

  protected async find(signal: AbortSignal): Promise<Found | undefined> {
    const answer = await this.#call('/v3/kv/range', { key: toBase64(this.#key) }, signal);
    const [found] = read(answer, rangeAnswer).kvs ?? [];
    if (found === undefined) return undefined;
    return { version: found.mod_revision, bytes: Buffer.from(found.value ?? '', 'base64') };
  }

  protected async replace(
    signal: AbortSignal,
    before: string | undefined,
    text: string,
  ): Promise<SwapResult> {
    const put = { request_put: { key: toBase64(this.#key), value: toBase64(text) } };
    const answer = await this.#transact(before, [put], signal);
    if (denials.includes(answer.status)) return { kind: 'denied', reason: showFailure(answer) };
    const { succeeded, header } = read(answer, transactionAnswer);
    return succeeded ? { kind: 'written', version: header.revision } : { kind: 'stale' };
  }

  protected async move(signal: AbortSignal, version: string): Promise<void> {
    const found = await this.find(signal);
    if (found?.version !== version) return;
    const value = found.bytes.toString('base64');
    const moves = [
      { request_put: { key: toBase64(this.#key + asideSuffix), value } },
      { request_delete_range: { key: toBase64(this.#key) } },
    ];
    read(await this.#transact(version, moves, signal), transactionAnswer);
  }

  /** `version`: undefined while the key does not exist. */
  #transact(
    version: string | undefined,
    success: readonly unknown[],
    signal: AbortSignal,
  ): Promise<JsonAnswer> {
    const key = toBase64(this.#key);
    const compare = { key, target: 'MOD', result: 'EQUAL', mod_revision: version ?? '0' };
    return this.#call('/v3/kv/txn', { compare: [compare], success }, signal);
  }

  async #call(path: string, body: unknown, signal: AbortSignal): Promise<JsonAnswer> {
    const password = await readEnginePassword(this.#access);
    const answer = await this.#callAs(path, body, password, signal);
    // etcd no longer knows the token: it did not execute the call.
    if (answer.status !== 401 || this.#token === undefined) return answer;
    this.#token = undefined;
    return this.#callAs(path, body, password, signal);
  }

  async #callAs(
    path: string,
    body: unknown,
    password: string | undefined,
    signal: AbortSignal,
  ): Promise<JsonAnswer> {
    const { username } = this.#address;
    if (username !== undefined && password !== undefined && this.#token === undefined) {
      const login = { name: username, password };
      const answer = await this.#send('/v3/auth/authenticate', login, signal);
      const shown = redact(showFailure(answer), [password]);
      if (answer.status !== 200) throw new AppError('store', `user '${username}': ${shown}`);
      this.#token = read(answer, loginAnswer).token;
    }
    return this.#send(path, body, signal);
  }

  async #send(path: string, body: unknown, signal: AbortSignal): Promise<JsonAnswer> {
    const { endpoints } = this.#address;
    const endpoint = endpoints[this.#failures % endpoints.length];
    const headers = this.#token === undefined ? {} : { authorization: this.#token };
    const engine = { name: `etcd at ${endpoint?.host}`, clocks: this.#clocks };
    try {
      const tls = await readEngineTls(this.#access);
      const call = { method: 'POST', headers, body, tls, signal } as const;
      const answer = await callEngine(new URL(path, endpoint), call, engine);
      // The member has no leader.
      if (answer.status >= 500) this.#failures++;
      return answer;
    } catch (error) {
      this.#failures++;
      throw error;
    }
  }
}

function read<Schema extends TSchema>(answer: JsonAnswer, schema: Schema): Static<Schema> {
  return readAnswer(answer, schema, 'the JSON gateway of etcd (v3)');
}

function toBase64(text: string): string {
  return Buffer.from(text).toString('base64');
}
