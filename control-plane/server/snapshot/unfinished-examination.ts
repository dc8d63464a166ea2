// Records in the state directory which revision is being examined, so that a revision whose examination killed the
// process is not examined again at every start: it waits for an operator.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import { readSmallFile } from '../../../shared/small-file.ts';
import type { Built } from './building.ts';

const maxBytes = 1_024;

export class UnfinishedExamination {
  readonly #file: string;
  /** The record of an earlier process. */
  #left: string | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(stateDirectory: string) {
    this.#file = join(stateDirectory, 'examined.revision');
  }

  /** If there is no record, or it cannot be read, every revision is examined. */
  async read(): Promise<void> {
    try {
      this.#left = (await readSmallFile(this.#file, maxBytes)).trim();
    } catch {
      this.#left = undefined;
    }
  }

  /** Refuses the revision whose examination did not end; examines any other. */
  during(id: string, examine: () => Built | Promise<Built>): Promise<Built> {
    if (id === this.#left) {
      return Promise.resolve({ outcome: { ok: false, problems: [this.#refuse()] }, documents: [] });
    }
    this.#left = undefined;
    const done = this.#note(id).then(examine);
    this.#last = done.then(
      () => this.#forget(),
      () => this.#forget(),
    );
    return done;
  }

  /** Resolves when no write of the record is pending. */
  async settled(): Promise<void> {
    await this.#last;
  }

  async #note(id: string): Promise<void> {
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
      await writeFile(this.#file, `${id}\n`, { mode: 0o600 });
    } catch {
      // Other files in the same directory report why it cannot be written.
    }
  }

  async #forget(): Promise<void> {
    await rm(this.#file, { force: true }).catch(() => {});
  }

  #refuse(): Problem {
    const message =
      'its examination did not end last time: this control plane was killed meanwhile, so it is not tried again by itself';
    const hint = `make another revision with fewer rules; or give the process more memory, remove ${this.#file} and start it again`;
    return problemOf('error', 'too-large', '(all files)', message, hint);
  }
}
