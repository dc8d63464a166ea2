// Which requests of a flood are counted, and how many each of them stands for: of each second the first ones one by one, then
// samples, so that a flood costs no more. The bounds of a count by samples are four standard deviations.

/** Requests of a second that are counted one by one; then so many samples, each for a few requests; all further
 * samples are for many. */
const singlesPerSecond = 1_000;
const fewPerSecond = 1_000;
const few = 8;
const many = 128;
/** How far a count by samples may be off, in standard deviations: further once in 10,000 times. */
const deviations = 4;
/** A value that would have had more samples than this has one, but for once in 10,000 times. */
const samplesMissed = 10;

export class Sampling {
  /** How many requests the one that is counted now stands for. */
  weight = 1;
  /** The largest weight since `restart`. */
  #largestWeight = 1;
  /** How many of the next requests are not counted. */
  #skipped = 0;
  #second = 0;
  #countedThisSecond = 0;
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Whether this request is not counted: all that a flood pays for most of its requests. */
  skips(): boolean {
    if (this.#skipped === 0) return false;
    this.#skipped--;
    return true;
  }

  /** Call it when a request was counted. */
  counted(nowSeconds: number): void {
    this.#largestWeight = Math.max(this.#largestWeight, this.weight);
    if (nowSeconds !== this.#second) {
      this.#second = nowSeconds;
      this.#countedThisSecond = 0;
    }
    this.#countedThisSecond++;
    this.weight = weightAfter(this.#countedThisSecond);
    if (this.weight === 1) return;
    // Each with the same chance, not every 128th: requests may come in a pattern.
    this.#skipped = Math.floor(Math.log(1 - this.#random()) / Math.log(1 - 1 / this.weight));
  }

  /** What one count by a sample adds to the variance of its value. */
  get variance(): number {
    return this.weight * (this.weight - 1);
  }

  /** How many more requests a value may have had than `most`, which is counted of it at most, since it had too few samples. */
  missedOf(most: number): number {
    if (this.#largestWeight === 1) return 0;
    return samplesMissed * this.#largestWeight + deviationOf(most * this.#largestWeight);
  }

  /** Begins a period. */
  restart(): void {
    this.#largestWeight = 1;
  }
}

/** How far a count with this variance may be off. */
export function deviationOf(variance: number): number {
  return Math.ceil(deviations * Math.sqrt(variance));
}

function weightAfter(counted: number): number {
  if (counted <= singlesPerSecond) return 1;
  return counted <= singlesPerSecond + fewPerSecond ? few : many;
}
