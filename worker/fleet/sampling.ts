// Decides which requests of a flood are counted, and how many requests each of them represents: in each second the
// first ones are counted one by one, later ones by samples, so that a larger flood costs no more. The bounds of a count
// by samples are four standard deviations.

/**
 * Requests of a second that are counted one by one; then so many samples that each represent a few requests; all
 * further samples represent many.
 */
const singlesPerSecond = 1_000;
const fewPerSecond = 1_000;
const few = 8;
const many = 128;
/** The bounds of a count by samples, in standard deviations: exceeded once in 10,000 times. */
const deviations = 4;
/** A value with so many expected samples has at least one, except once in 10,000 times. */
const samplesMissed = 10;

export class Sampling {
  /** How many requests the next counted one represents. */
  weight = 1;
  /** The largest weight since `restart`. */
  #largestWeight = 1;
  /** How many of the next requests are skipped. */
  #skipped = 0;
  #second = 0;
  #countedThisSecond = 0;
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Whether this request is skipped: the only cost of most requests of a flood. */
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
    // Each request has the same chance, rather than every 128th: requests may follow a pattern.
    this.#skipped = Math.floor(Math.log(1 - this.#random()) / Math.log(1 - 1 / this.weight));
  }

  /** The variance that one sample adds to the count of its value. */
  get variance(): number {
    return this.weight * (this.weight - 1);
  }

  /**
   * How many requests of a value may be missing in its count, which is at most `most`, because it had too few samples.
   */
  missedOf(most: number): number {
    if (this.#largestWeight === 1) return 0;
    return samplesMissed * this.#largestWeight + deviationOf(most * this.#largestWeight);
  }

  /** Begins a period. */
  restart(): void {
    this.#largestWeight = 1;
  }
}

/** The bound of the error of a count with this variance. */
export function deviationOf(variance: number): number {
  return Math.ceil(deviations * Math.sqrt(variance));
}

function weightAfter(counted: number): number {
  if (counted <= singlesPerSecond) return 1;
  return counted <= singlesPerSecond + fewPerSecond ? few : many;
}
