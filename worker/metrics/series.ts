// The series of pulled metrics, and their families: values are read on demand, and no longer exposed after a long time
// without a change. pull-series.ts makes the families.
import type { ObserverOptions } from './metric-mapping.ts';
import type { TimerSeries } from './timer-series.ts';

export interface ValueSource {
  readonly value: number;
}

interface Labelled {
  /** Labels such as `a="b",c="d"`; '' without any. */
  readonly labels: string;
}

/** A series of one line. */
export interface ValueSeries extends Labelled {
  readonly kind: 'value';
  /** Undefined while there is no value to expose. */
  read(nowMs: number): number | undefined;
}

/** The lines of one timer. */
export interface ObservedSeries extends Labelled {
  readonly kind: 'timer';
  read(nowMs: number): TimerSeries | undefined;
}

export type Series = ValueSeries | ObservedSeries;

// Classes, because there may be very many: they share methods.

/** The sum of counters; not exposed at 0. */
export class SumSeries implements ValueSeries {
  readonly labels: string;
  readonly #aging: Aging | undefined;
  #sources: ValueSource | ValueSource[];

  constructor(labels: string, source: ValueSource, ttlMs: number) {
    this.labels = labels;
    this.#sources = source;
    this.#aging = ttlMs > 0 ? new Aging(ttlMs) : undefined;
  }
  get kind() {
    return 'value' as const;
  }
  add(source: ValueSource): void {
    if (Array.isArray(this.#sources)) this.#sources.push(source);
    else this.#sources = [this.#sources, source];
  }
  read(nowMs: number): number | undefined {
    let sum = 0;
    if (Array.isArray(this.#sources)) for (const { value } of this.#sources) sum += value;
    else sum = this.#sources.value;
    return (this.#aging?.sinceLastPause(sum, nowMs) ?? sum) || undefined;
  }
}

/** Exposed from the start, so that its first hit is an increase. */
export class LastingSumSeries extends SumSeries {
  override read(nowMs: number): number {
    return super.read(nowMs) ?? 0;
  }
}

/** Gauges are set again before each reading, so they never age. */
export class GaugeSeries implements ValueSeries {
  readonly labels: string;
  readonly #source: ValueSource;

  constructor(labels: string, source: ValueSource) {
    this.labels = labels;
    this.#source = source;
  }
  get kind() {
    return 'value' as const;
  }
  read(): number {
    return this.#source.value;
  }
}

/** A timer without observations is not exposed; after a long pause it starts empty. */
export class TimedSeries implements ObservedSeries {
  readonly labels: string;
  readonly #create: () => TimerSeries;
  readonly #aging: Aging | undefined;
  #timer: TimerSeries;

  constructor(labels: string, create: () => TimerSeries, ttlMs: number) {
    this.labels = labels;
    this.#create = create;
    this.#timer = create();
    this.#aging = ttlMs > 0 ? new Aging(ttlMs) : undefined;
  }
  get kind() {
    return 'timer' as const;
  }
  observe(value: number, times: number): void {
    this.#timer.observe(value, times);
  }
  read(nowMs: number): TimerSeries | undefined {
    const { count } = this.#timer;
    if (count > 0 && this.#aging?.sinceLastPause(count, nowMs) === 0) {
      this.#timer = this.#create();
      this.#aging.restart();
    }
    return this.#timer.count > 0 ? this.#timer : undefined;
  }
}

/** Applies the scale of a mapping. */
export class ScaledSource implements ValueSource {
  readonly #source: ValueSource;
  readonly #scale: number;

  constructor(source: ValueSource, scale: number) {
    this.#source = source;
    this.#scale = scale;
  }
  get value(): number {
    return this.#source.value * this.#scale;
  }
}

/** Checks at each reading whether a total has grown, and drops the total before a long pause. */
class Aging {
  readonly #ttlMs: number;
  #seen = 0;
  #changedMs = 0;
  #forgotten = 0;

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }
  sinceLastPause(total: number, nowMs: number): number {
    if (total !== this.#seen) {
      this.#seen = total;
      this.#changedMs = nowMs;
    } else if (nowMs - this.#changedMs >= this.#ttlMs) this.#forgotten = total;
    return total - this.#forgotten;
  }
  restart(): void {
    this.#seen = 0;
    this.#forgotten = 0;
  }
}

/** The series of one family by their labels; most families of unmapped names have only one. */
export class SeriesList implements Iterable<Series> {
  #first: Series | undefined;
  #others: Map<string, Series> | undefined;

  get(labels: string): Series | undefined {
    return this.#first?.labels === labels ? this.#first : this.#others?.get(labels);
  }
  add(series: Series): void {
    if (this.#first === undefined) this.#first = series;
    else {
      this.#others ??= new Map();
      this.#others.set(series.labels, series);
    }
  }
  *[Symbol.iterator](): Generator<Series> {
    if (this.#first !== undefined) yield this.#first;
    if (this.#others !== undefined) yield* this.#others.values();
  }
}

export type FamilyType = 'counter' | 'gauge' | ObserverOptions['type'];

/** A metric family: all series with the same name, their type and description. */
export interface Family {
  readonly name: string;
  readonly type: FamilyType;
  readonly help: string;
  readonly series: SeriesList;
}
