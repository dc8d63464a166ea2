// An error that ends the whole connection.
import type { ErrorCode } from './frame.ts';

/** Ends the connection with GOAWAY (RFC 9113 section 5.4.1). */
export class ConnectionError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, text: string) {
    super(text);
    this.code = code;
  }
}
