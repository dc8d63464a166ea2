// Pushes a commit to exactly one ref. Git takes the name in a refspec such as `COMMIT:refs/heads/main` for the end of a name, too:
// a branch `refs/heads/main`, which is `refs/heads/refs/heads/main`, would get the push, or make it ambiguous. It does not do so
// with a pattern.
import type { Git } from './git-command.ts';

export interface Push {
  readonly url: string;
  readonly commit: string;
  /** Its full name. */
  readonly ref: string;
  /** The commit to which the ref points; undefined where there is none. */
  readonly before: string | undefined;
  /** Of what asks the remote, and of what does not. */
  readonly timeoutMs: number;
  readonly localTimeoutMs: number;
  readonly signal: AbortSignal;
}

/** Rejects with a GitError, also where the ref points to another commit by now. */
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
