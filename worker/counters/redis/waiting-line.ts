// The requests that wait to be sent, in order of arrival. The caller decides how long they may wait.
import type { CountRequest } from '../store.ts';

export interface WaitingLine {
  readonly size: number;
  /** When the first one came, on the monotonic clock; undefined when none waits. */
  readonly oldestMs: number | undefined;
  push(request: CountRequest, nowMs: number): void;
  /** Removes and returns the first one. */
  shift(): CountRequest | undefined;
  /** Removes and returns all. */
  takeAll(): CountRequest[];
  /** Removes and returns those for which `leaves` is true. */
  takeWhere(leaves: (request: CountRequest, arrivedMs: number) => boolean): CountRequest[];
}

export function createWaitingLine(): WaitingLine {
  let requests: CountRequest[] = [];
  /** In a list of its own, to avoid an object per request. */
  let arrivals: number[] = [];
  /** Place of the first one, so that taking one does not move the others. `takeWhere` closes the gap. */
  let head = 0;
  return {
    get size() {
      return requests.length - head;
    },
    get oldestMs() {
      return arrivals[head];
    },
    push(request, nowMs) {
      requests.push(request);
      arrivals.push(nowMs);
    },
    shift() {
      const first = requests[head];
      if (first === undefined) return undefined;
      head++;
      if (head === requests.length) clear();
      return first;
    },
    takeAll() {
      const all = requests.slice(head);
      clear();
      return all;
    },
    takeWhere(leaves) {
      const leaving: CountRequest[] = [];
      // In place: this happens often, and mostly none leaves.
      let staying = 0;
      for (let place = head; place < requests.length; place++) {
        const request = requests[place] as CountRequest;
        const arrivedMs = arrivals[place] as number;
        if (leaves(request, arrivedMs)) {
          leaving.push(request);
        } else {
          requests[staying] = request;
          arrivals[staying] = arrivedMs;
          staying++;
        }
      }
      requests.length = staying;
      arrivals.length = staying;
      head = 0;
      return leaving;
    },
  };

  function clear(): void {
    requests = [];
    arrivals = [];
    head = 0;
  }
}
