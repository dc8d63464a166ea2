// Pushes a commit to exactly one ref.
//
// In a refspec such as `COMMIT:refs/heads/main`, git also matches the name as a suffix: a branch called
// `refs/heads/main`, whose full name is `refs/heads/refs/heads/main`, would receive the push or make it ambiguous. Git
// does not do so for a pattern.
import type { Git } from './git-command.ts';

export interface Push {
  readonly url: string;
  readonly commit: string;
  /** The full name of the ref. */
  readonly ref: string;
  /** The commit that the ref points to; undefined if the ref does not exist. */
  readonly before: string | undefined;
  /** Time limit of each command, whether or not it contacts the remote. */
  readonly timeoutMs: number;
  readonly localTimeoutMs: number;
  readonly signal: AbortSignal;
}

/** Rejects with a GitError, also if the ref points to another commit by now. */
export async function pushTo(git: Git, push: Push): Promise<void> {
  const { url, commit, ref, before, signal } = push;
  const split = ref.lastIndexOf('/');
  const outgoing = `refs/outgoing/${commit}`;
  const name = ref.slice(split + 1);
  const local = { timeoutMs: push.localTimeoutMs, signal };
  await git.run(['update-ref', `${outgoing}/${name}`, commit], local);
  const lease = `--force-with-lease=${ref}:${before ?? ''}`;
  const refspec = `${outgoing}/*:${ref.slice(0, split)}/*`;
  try {
    await git.run(['push', '--porcelain', '--no-verify', lease, '--', url, refspec], {
      timeoutMs: push.timeoutMs,
      signal,
      isRemote: true,
    });
  } finally {
    if (!signal.aborted) await git.run(['update-ref', '-d', `${outgoing}/${name}`], local);
  }
}
