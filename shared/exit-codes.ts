// The exit codes of both programs. An orderly stop ends with 0, and so does a second signal.
export const exitCodes = { ok: 0, failed: 1, wrongUsage: 2 } as const;
