// Maps with texts as keys that grow in small steps. A Map moves all of its entries each time their number has doubled,
// which takes milliseconds with a hundred thousand: above some ten thousand, further entries go to another Map.

export interface TextMap<Value> {
  readonly size: number;
  get(text: string): Value | undefined;
  set(text: string, value: Value): unknown;
}

/** How many entries one Map holds: moving half of them takes less than a millisecond. A power of two, as its sizes are. */
const mostOfOne = 32_768;

/** The map to use from now on: `map` itself while it is small. Call it before each `set`. */
export function withRoom<Value>(map: TextMap<Value>): TextMap<Value> {
  return map instanceof Map && map.size >= mostOfOne ? new SeveralMaps<Value>(map) : map;
}

class SeveralMaps<Value> implements TextMap<Value> {
  /** All of them are full but the last one. */
  readonly #maps: Map<string, Value>[];

  constructor(first: Map<string, Value>) {
    this.#maps = [first];
  }

  get size(): number {
    return this.#maps.reduce((sum, { size }) => sum + size, 0);
  }

  get(text: string): Value | undefined {
    for (const map of this.#maps) {
      const value = map.get(text);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  set(text: string, value: Value): void {
    let map = this.#maps.find((each) => each.has(text)) ?? this.#maps.at(-1);
    if (map === undefined || (map.size >= mostOfOne && !map.has(text))) {
      map = new Map();
      this.#maps.push(map);
    }
    map.set(text, value);
  }
}
