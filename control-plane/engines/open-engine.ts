// The record's shared text in the engine that the settings name.
import type { SharedText } from '../store/shared-text.ts';
import type { EngineAccess } from './engine-access.ts';
import { EtcdSharedText } from './etcd-shared-text.ts';
import type { RecordPlace } from './record-address.ts';
import { RedisSharedText } from './redis-shared-text.ts';

export interface EngineSettings {
  readonly place: RecordPlace;
  /** Tells the records of several fleets apart. */
  readonly name: string;
  readonly access: EngineAccess;
}

/** Nothing is read or written by this call. */
export function openEngineText({ place, name, access }: EngineSettings): SharedText {
  return place.kind === 'etcd'
    ? new EtcdSharedText(place, name, access)
    : new RedisSharedText(place, name, access);
}
