// A record on its way into an engine. The one beside the rules counts until the engine has one, so that what was taken
// back remains so. After that the one beside the rules names the engine: a control plane that does not know engines, or
// is started without this one, takes no step by an old record.
import type { SharedText, SwapResult, VersionedText } from '../store/shared-text.ts';
import { isMovedText, toMovedText } from './record.ts';

/** No engine has versions with this prefix. */
const beforePrefix = 'before the move ';
/** A running control plane of an earlier version may still write there. */
const maxAttempts = 5;

export class MovingText implements SharedText {
  readonly description: string;
  readonly #engine: SharedText;
  readonly #before: SharedText;
  /** The text that `#before` had when it was first read; one reading is enough, as every later write is to the engine.
   * Undefined until then; without a text once the engine had one: removing that must not restore an older one. */
  #found: { readonly text: VersionedText | undefined } | undefined;

  constructor(engine: SharedText, before: SharedText) {
    this.#engine = engine;
    this.#before = before;
    this.description = engine.description;
  }

  async read(): Promise<VersionedText | undefined> {
    const text = await this.#engine.read();
    if (text !== undefined) {
      this.#found = { text: undefined };
      return text;
    }
    this.#found ??= { text: withoutMoved(await this.#before.read()) };
    const found = this.#found.text;
    return found && { version: beforePrefix + found.version, text: found.text };
  }

  async swap(before: string | undefined, text: string): Promise<SwapResult> {
    const isFirst = before === undefined || before.startsWith(beforePrefix);
    const result = await this.#engine.swap(isFirst ? undefined : before, text);
    if (result.kind === 'written') {
      if (before?.startsWith(beforePrefix)) void this.#leave(before.slice(beforePrefix.length));
      this.#found = { text: undefined };
    }
    return result;
  }

  /** Best effort: if only the engine accepts writes, earlier versions cannot write beside the rules either. */
  async #leave(version: string): Promise<void> {
    try {
      let newest: string | undefined = version;
      for (let again = 0; again < maxAttempts && newest !== undefined; again++) {
        const { kind } = await this.#before.swap(newest, toMovedText(this.description));
        if (kind !== 'stale') return;
        newest = withoutMoved(await this.#before.read())?.version;
      }
    } catch {
      // The record is in the engine, whatever is beside the rules.
    }
  }

  async setAside(version: string): Promise<string> {
    if (!version.startsWith(beforePrefix)) return this.#engine.setAside(version);
    this.#found = { text: undefined };
    return this.#before.setAside(version.slice(beforePrefix.length));
  }

  close(): void {
    this.#engine.close();
    this.#before.close();
  }
}

function withoutMoved(text: VersionedText | undefined): VersionedText | undefined {
  return text !== undefined && isMovedText(text.text) ? undefined : text;
}
