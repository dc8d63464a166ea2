// The exit codes of both programs. An orderly stop, and a second signal, end with 0.
export const exitCodes = { ok: 0, failed: 1, wrongUsage: 2 } as const;
