// An event that is more than its data. Other values that a generator of events yields are the data alone.

export interface ServerEventOptions {
  /** Browsers send the last one they have seen as `Last-Event-ID` when they connect again. */
  readonly id?: string;
  /** The type that listeners of a browser are registered for; `message` without. */
  readonly name?: string;
  /** The time that a browser waits before it connects again. */
  readonly retryMs?: number;
}

/** Throws a TypeError for a name or an id that would end its line. */
export class ServerEvent<Data = unknown> {
  readonly data: Data;
  readonly options: ServerEventOptions;

  constructor(data: Data, options: ServerEventOptions = {}) {
    for (const text of [options.id ?? '', options.name ?? '']) {
      if (/[\0\r\n]/.test(text))
        throw new TypeError('the id and the name of an event are one line');
    }
    this.data = data;
    this.options = options;
  }
}
