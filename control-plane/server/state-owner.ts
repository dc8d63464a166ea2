// Notices another control plane on the same state directory: each writes its name into one file there, and finds another
// one in it. They would write over each other's last good revision, record and charts.
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { writeFileAtomically } from './store/atomic-file.ts';

export const ownerFile = 'control-plane.owner';
export const ownerCheckMs = 10_000;

export interface StateOwnerDeps {
  readonly stateDirectory: string;
  /** The name of this process, human-readable and never used before. */
  readonly name: string;
  readonly log: Log;
  readonly clock: Clock;
}

export class StateOwner {
  readonly #deps: StateOwnerDeps;
  readonly #path: string;
  #named = '';
  #checking: Promise<void> = Promise.resolve();
  #stop = () => {};

  constructor(deps: StateOwnerDeps) {
    this.#deps = deps;
    this.#path = join(deps.stateDirectory, ownerFile);
  }

  /** Never rejects. */
  async start(): Promise<void> {
    await this.#write();
    this.#stop = repeatAfter(this.#deps.clock, ownerCheckMs, () => {
      this.#checking = this.#check();
      return this.#checking;
    });
  }

  /** Never rejects: what is left behind is logged at the next start. */
  async stop(): Promise<void> {
    this.#stop();
    await this.#checking;
    if ((await this.#read()) === this.#deps.name)
      await rm(this.#path, { force: true }).catch(() => {});
  }

  async #check(): Promise<void> {
    const { stateDirectory, name, log } = this.#deps;
    const found = await this.#read();
    if (found === name) return;
    if (found !== undefined && found !== this.#named) {
      this.#named = found;
      log.warning(
        `${stateDirectory} is the state directory of another control plane as well (${toExcerpt(found)}): each overwrites the other's files; set --state-dir to another directory on one of them`,
      );
    }
    await this.#write();
  }

  /** Undefined where the file is missing or cannot be read: then reading the files beside it fails with the reason. */
  async #read(): Promise<string | undefined> {
    return readFile(this.#path, 'utf8').catch(() => undefined);
  }

  async #write(): Promise<void> {
    const { stateDirectory, name } = this.#deps;
    try {
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      await writeFileAtomically(this.#path, name, 0o600);
    } catch {
      // The files kept there report why nothing can be written.
    }
  }
}
