// Opens the record's shared text in the configured engine.
import type { ComparedClocks } from '../../compared-clocks.ts';
import type { SharedText } from '../../store/shared-text.ts';
import type { EngineAccess } from './engine-access.ts';
import type { EtcdAddress } from './etcd-shared-text.ts';
import { EtcdSharedText } from './etcd-shared-text.ts';
import {
  type ApiServer,
  type KubernetesAddress,
  KubernetesSharedText,
} from './kubernetes-shared-text.ts';
import { type RedisAddress, RedisSharedText } from './redis-shared-text.ts';

export type EngineSettings =
  | { readonly address: KubernetesAddress; readonly apiServer: ApiServer }
  | {
      readonly address: RedisAddress | EtcdAddress;
      /** Distinguishes the records of several fleets. */
      readonly name: string;
      readonly access: EngineAccess;
    };

/** The call itself reads and writes nothing. */
export function openEngineText(settings: EngineSettings, clocks: ComparedClocks): SharedText {
  if ('apiServer' in settings) {
    return new KubernetesSharedText(settings.address, settings.apiServer, undefined, clocks);
  }
  const { address, name, access } = settings;
  return address.kind === 'etcd'
    ? new EtcdSharedText(address, name, access, undefined, clocks)
    : new RedisSharedText(address, name, access);
}
