// An event with more than its data. For other values that a generator of events yields, the value is the data.

export interface ServerEventOptions {
  /** Browsers send the last id that they have received as `Last-Event-ID` when they reconnect. */
  readonly id?: string;
  /** The event type for which listeners in a browser are registered; `message` if absent. */
  readonly name?: string;
  /** The time that a browser waits before it reconnects. */
  readonly retryMs?: number;
}

/** Throws a TypeError for a name or an id that contains a line break, and for an invalid time. */
export class ServerEvent<Data = unknown> {
  readonly data: Data;
  readonly options: ServerEventOptions;

  constructor(data: Data, options: ServerEventOptions = {}) {
    for (const text of [options.id ?? '', options.name ?? '']) {
      if (/[\0\r\n]/.test(text))
        throw new TypeError('the id and the name of an event are one line');
    }
    if (!/^\d+$/.test(String(options.retryMs ?? 0))) {
      throw new TypeError('retryMs of an event is a whole number of milliseconds');
    }
    this.data = data;
    this.options = options;
  }

  /** Throws in a method that does not produce events, which would send it as an object. */
  toJSON(): never {
    throw new TypeError("a ServerEvent is sent by op({ produces: 'text/event-stream' })");
  }
}
