// A text that control planes share in a ConfigMap of Kubernetes: one of its keys, replaced by a patch that names the
// resourceVersion. The token and the CA of the pod are read at each call, as Kubernetes renews them.
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { AppError, errorText } from '../../../../shared/errors.ts';
import { type HostPort, showHostPort } from '../../../../shared/host-port.ts';
import { redact } from '../../../../shared/redact.ts';
import { readSmallFile } from '../../../../shared/small-file.ts';
import type { ComparedClocks } from '../../compared-clocks.ts';
import type { JsonAnswer } from '../../json-call.ts';
import { asideSuffix } from '../../store/set-aside.ts';
import type { SwapResult } from '../../store/shared-text.ts';
import { callEngine, readAnswer, readEngineTls, showFailure } from './engine-access.ts';
import { EngineText, engineTimeoutMs, type Found } from './engine-text.ts';

export interface KubernetesAddress {
  readonly kind: 'kubernetes';
  readonly namespace: string;
  /** The name of the ConfigMap. */
  readonly name: string;
}

export interface ApiServer {
  readonly address: HostPort;
  /** The directory with `token` and `ca.crt` of the pod's service account. */
  readonly credentials: string;
}

const podCredentials = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Reads the API server's address from the pod's environment; undefined outside of a pod. */
export function findApiServer(
  environment: Readonly<Record<string, string | undefined>>,
): ApiServer | undefined {
  const host = environment['KUBERNETES_SERVICE_HOST'];
  const port = Number(environment['KUBERNETES_SERVICE_PORT'] ?? 443);
  if (!host || !(port > 0 && port <= 65_535)) return undefined;
  return { address: { host, port }, credentials: podCredentials };
}

const configMap = Type.Object({
  metadata: Type.Object({ resourceVersion: Type.String() }),
  data: Type.Optional(Type.Record(Type.String(), Type.String())),
});
const key = 'record';
const asideKey = `${key}${asideSuffix}`;
/** A text that is moved aside has to fit into a ConfigMap, of 1 MiB, beside the largest record. */
const maxAsideLength = 128 * 1024;
const maxTokenBytes = 64 * 1024;

export class KubernetesSharedText extends EngineText<AbortSignal> {
  readonly #address: KubernetesAddress;
  readonly #server: ApiServer;
  readonly #clocks: ComparedClocks | undefined;

  constructor(
    address: KubernetesAddress,
    server: ApiServer,
    timeoutMs = engineTimeoutMs,
    clocks?: ComparedClocks,
  ) {
    const { namespace, name } = address;
    const at = showHostPort(server.address);
    super(
      `ConfigMap ${namespace}/${name} in Kubernetes at ${at}`,
      `${namespace}/${name} ${asideKey}`,
      timeoutMs,
    );
    this.#address = address;
    this.#server = server;
    this.#clocks = clocks;
  }

  protected open<Result>(signal: AbortSignal, use: (signal: AbortSignal) => Promise<Result>) {
    return use(signal);
  }

  protected async find(signal: AbortSignal): Promise<Found | undefined> {
    return toFound(await this.#fetch(signal));
  }

  protected async replace(
    signal: AbortSignal,
    before: string | undefined,
    text: string,
  ): Promise<SwapResult> {
    const data = { [key]: text };
    if (before !== undefined) return toResult(await this.#patch(before, data, signal));
    const found = await this.#fetch(signal);
    if (found === undefined) {
      const created = await this.#create(data, signal);
      // The namespace does not exist.
      if (created.status === 404) throw new AppError('store', showFailure(created));
      return toResult(created);
    }
    // The ConfigMap has no record, for example because it was made in advance.
    if (toFound(found) !== undefined) return { kind: 'stale' };
    return toResult(await this.#patch(found.metadata.resourceVersion, data, signal));
  }

  protected async move(signal: AbortSignal, version: string): Promise<void> {
    const found = await this.#fetch(signal);
    if (found?.metadata.resourceVersion !== version) return;
    const data = { [key]: null, [asideKey]: (found.data?.[key] ?? '').slice(0, maxAsideLength) };
    const result = toResult(await this.#patch(version, data, signal));
    if (result.kind === 'denied') throw new AppError('store', result.reason);
  }

  async #fetch(signal: AbortSignal): Promise<Static<typeof configMap> | undefined> {
    const answer = await this.#call('GET', `/${this.#address.name}`, undefined, signal);
    return answer.status === 404 ? undefined : readConfigMap(answer);
  }

  #create(data: Readonly<Record<string, string>>, signal: AbortSignal): Promise<JsonAnswer> {
    const { name } = this.#address;
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
    return this.#call('POST', '', body, signal);
  }

  #patch(
    resourceVersion: string,
    data: Readonly<Record<string, string | null>>,
    signal: AbortSignal,
  ): Promise<JsonAnswer> {
    const body = { metadata: { resourceVersion }, data };
    return this.#call('PATCH', `/${this.#address.name}`, body, signal);
  }

  async #call(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    body: unknown,
    signal: AbortSignal,
  ): Promise<JsonAnswer> {
    const { address, credentials } = this.#server;
    const tls = { ca: join(credentials, 'ca.crt'), cert: undefined, key: undefined };
    const token = (await readSmallFile(join(credentials, 'token'), maxTokenBytes)).trim();
    const base = `https://${showHostPort(address)}/api/v1/namespaces/${this.#address.namespace}`;
    const headers = {
      authorization: `Bearer ${token}`,
      ...(method === 'PATCH' && { 'content-type': 'application/merge-patch+json' }),
    };
    const engine = { name: `Kubernetes at ${showHostPort(address)}`, clocks: this.#clocks };
    try {
      const read = await readEngineTls({ password: '', passwordFile: undefined, tls });
      const call = { method, headers, body, tls: read, signal };
      return await callEngine(new URL(`${base}/configmaps${path}`), call, engine);
    } catch (error) {
      throw new AppError('store', redact(errorText(error), [token]), { cause: error });
    }
  }
}

function toFound(found: Static<typeof configMap> | undefined): Found | undefined {
  const text = found?.data?.[key];
  if (found === undefined || text === undefined) return undefined;
  return { version: found.metadata.resourceVersion, bytes: Buffer.from(text) };
}

function toResult(answer: JsonAnswer): SwapResult {
  // The ConfigMap was changed, created or removed meanwhile.
  if ([404, 409].includes(answer.status)) return { kind: 'stale' };
  if (answer.status === 403) return { kind: 'denied', reason: showFailure(answer) };
  return { kind: 'written', version: readConfigMap(answer).metadata.resourceVersion };
}

function readConfigMap(answer: JsonAnswer): Static<typeof configMap> {
  return readAnswer(answer, configMap, 'the API of Kubernetes');
}
