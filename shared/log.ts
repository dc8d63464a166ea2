// (placeholder, replaced by its owner)
/** Messages go to standard error, one line each. Secrets are never passed in. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warning(message: string): void;
  error(message: string): void;
  /** True when debug messages are written, so that callers can skip building them. */
  readonly isDebug: boolean;
}
