// A metric family: series of one name, with their type and description.
import type { ObserverOptions } from './metric-mapping.ts';
import type { SeriesList } from './series.ts';

export type FamilyType = 'counter' | 'gauge' | ObserverOptions['type'];

/** All series of one name. */
export interface Family {
  readonly name: string;
  readonly type: FamilyType;
  readonly help: string;
  readonly series: SeriesList;
}
