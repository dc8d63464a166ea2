// A record on its way into an engine: until the engine has one, the one beside the rules counts, so that what was taken
// back there stays so.
import type { SharedText, SwapResult, VersionedText } from '../store/shared-text.ts';

/** No engine has versions like it. */
const beforePrefix = 'before the move ';

export class MovingText implements SharedText {
  readonly description: string;
  readonly #engine: SharedText;
  readonly #before: SharedText;
  /** As `#before` had it when it was first read, which is enough: whoever writes, writes to the engine. Undefined until then;
   * without a text once the engine had one: who removes that means no older one. */
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
    this.#found ??= { text: await this.#before.read() };
    const found = this.#found.text;
    return found && { version: beforePrefix + found.version, text: found.text };
  }

  async swap(before: string | undefined, text: string): Promise<SwapResult> {
    const isFirst = before === undefined || before.startsWith(beforePrefix);
    const result = await this.#engine.swap(isFirst ? undefined : before, text);
    if (result.kind === 'written') this.#found = { text: undefined };
    return result;
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
