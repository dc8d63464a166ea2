// Opens the record's shared text in the configured engine.
import type { ComparedClocks } from '../../compared-clocks.ts';
import type { SharedText } from '../../store/shared-text.ts';
import type { EngineAccess } from './engine-access.ts';
import type { EtcdPlace } from './etcd-shared-text.ts';
import { EtcdSharedText } from './etcd-shared-text.ts';
import {
  type ApiServer,
  type KubernetesPlace,
  KubernetesSharedText,
} from './kubernetes-shared-text.ts';
import { type RedisPlace, RedisSharedText } from './redis-shared-text.ts';

export type EngineSettings =
  | { readonly place: KubernetesPlace; readonly apiServer: ApiServer }
  | {
      readonly place: RedisPlace | EtcdPlace;
      /** Distinguishes the records of several fleets. */
      readonly name: string;
      readonly access: EngineAccess;
    };

/** The call itself reads and writes nothing. */
export function openEngineText(settings: EngineSettings, clocks: ComparedClocks): SharedText {
  if ('apiServer' in settings) {
    return new KubernetesSharedText(settings.place, settings.apiServer, undefined, clocks);
  }
  const { place, name, access } = settings;
  return place.kind === 'etcd'
    ? new EtcdSharedText(place, name, access, undefined, clocks)
    : new RedisSharedText(place, name, access);
}
