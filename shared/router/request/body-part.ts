// A part of a `multipart/form-data` body while it arrives.

/** A field or a file of a streamed body: its bytes while they arrive. */
export interface BodyPart extends AsyncIterable<Uint8Array> {
  readonly name: string;
  /** As the client sends it, without folders; undefined for a field. Never a path to write to. */
  readonly filename: string | undefined;
  /** As the client sends it; `text/plain` if absent. */
  readonly type: string;
  /** The whole part as UTF-8. Throws 400 for other bytes, and 413 above 64 KiB. */
  text(): Promise<string>;
}
