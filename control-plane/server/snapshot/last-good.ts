// The sources of a start: the newest revision of the store, the last good one on disk, and the one whose examination an
// earlier process did not end.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import { readSmallFile } from '../../../shared/small-file.ts';
import { type Revision, toShortId } from '../store/revision.ts';
import { readRevisionFile, writeRevisionFile } from '../store/revision-file.ts';
import type { ConfigStore } from '../store/store.ts';
import type { RevisionMemory } from './admission.ts';
import type { BuildOutcome } from './build.ts';
import type { Built } from './building.ts';

export interface LastGoodDeps {
  readonly stateDirectory: string;
  /** The description of the store. */
  readonly store: string;
  readonly log: Log;
}

/** In the state directory. */
export const lastGoodFile = 'last-good.revision.json';

export class LastGood {
  readonly #deps: LastGoodDeps;
  readonly #file: string;
  #storedId: string | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: LastGoodDeps) {
    this.#deps = deps;
    this.#file = join(deps.stateDirectory, lastGoodFile);
  }

  /** Reads the stored revision of the same store; undefined if absent. Rejects with an AppError `store` if the
   * file is damaged. */
  async read(): Promise<Revision | undefined> {
    const revision = await readRevisionFile(this.#file, this.#deps.store);
    this.#storedId = revision?.id;
    return revision;
  }

  /** Returns at once. Failures are logged. */
  store(revision: Revision): void {
    if (revision.id === this.#storedId) return;
    this.#storedId = revision.id;
    this.#writing = this.#writing.then(() => this.#write(revision));
  }

  /** Resolves when no write is pending. */
  settled(): Promise<void> {
    return this.#writing;
  }

  async #write(revision: Revision): Promise<void> {
    const { stateDirectory, store, log } = this.#deps;
    // A newer one is waiting.
    if (this.#storedId !== revision.id) return;
    try {
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      await writeRevisionFile(this.#file, store, revision);
    } catch (error) {
      // Unless a newer one is waiting, which is written anyway.
      if (this.#storedId === revision.id) this.#storedId = undefined;
      log.warning(
        `Revision ${revision.id} cannot be stored for the next start: ${errorText(error)}; it is still served`,
      );
    }
  }
}

/** A revision to start with, or why it cannot be read. */
export type StoredRevision =
  | { readonly revision: Revision; readonly outcome: BuildOutcome; readonly problem?: undefined }
  | { readonly problem: string; readonly revision?: undefined; readonly outcome?: undefined };

export interface RestoreSources {
  readonly lastGood: Pick<LastGood, 'read'>;
  readonly store: Pick<ConfigStore, 'readRevision'>;
  readonly memory: Pick<RevisionMemory, 'inForce'>;
  readonly build: (revision: Revision) => BuildOutcome | Promise<BuildOutcome>;
  readonly log: Log;
}

/** The revision that an earlier process stored, or else the one recorded as in force; undefined if there is neither. */
export async function readStored(sources: RestoreSources): Promise<StoredRevision | undefined> {
  const { lastGood, store, memory, build, log } = sources;
  const stored = await tryToRead(
    () => lastGood.read(),
    'The last good revision cannot be restored',
  );
  const { inForce } = memory;
  const content = stored?.outcome?.ok ? stored.outcome.built.content : undefined;
  if (inForce === undefined || content === inForce.content) return stored;
  const found = await tryToRead(
    () => store.readRevision(inForce.revision),
    'The previous revision cannot be read',
  );
  if (found?.revision === undefined) return stored ?? found;
  if (stored?.problem !== undefined)
    log.warning(`${stored.problem}: the store's copy of it is used`);
  return found;

  async function tryToRead(
    read: () => Promise<Revision | undefined>,
    problem: string,
  ): Promise<StoredRevision | undefined> {
    try {
      const revision = await read();
      return revision && { revision, outcome: await build(revision) };
    } catch (error) {
      return { problem: `${problem}: ${errorText(error)}` };
    }
  }
}

const firstReadMs = 5_000;
/** A program that logs nothing for more than two seconds seems to hang. */
const firstReadNoticeMs = 2_000;

/** The newest revision of the store, unless the store hangs, which must not keep the workers from getting the last good
 * revision. Reading continues, and its result arrives like any other change. `problem`: why another revision is
 * served. */
export async function readNewest(sources: {
  readonly store: Pick<ConfigStore, 'read' | 'description'>;
  readonly log: Log;
  readonly clock: Clock;
}): Promise<{ readonly revision: Revision | undefined; readonly problem: string }> {
  const { store, log, clock } = sources;
  const late = Promise.withResolvers<never>();
  const cancelNotice = clock.after(firstReadNoticeMs, () => {
    log.info(`Reading ${store.description} is taking long; still waiting`);
  });
  const cancel = clock.after(firstReadMs, () => {
    const seconds = firstReadMs / 1000;
    late.reject(new AppError('store', `no answer within ${seconds}s, it is still asked`));
  });
  try {
    const revision = await Promise.race([store.read(), late.promise]);
    return { revision, problem: `Revision ${toShortId(revision.id)} is not served` };
  } catch (error) {
    const problem = `The store ${store.description} cannot be read (${errorText(error)})`;
    return { revision: undefined, problem };
  } finally {
    cancelNotice();
    cancel();
  }
}

const maxBytes = 1_024;

/** Stores which revision is being examined, so that a revision whose examination killed the process is not examined again
 * at every start: it waits for an operator. */
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
