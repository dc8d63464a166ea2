// The grpc-timeout header (gRPC over HTTP/2, "Timeout"): at most eight digits and a unit.

const msOfUnit: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** The last text parsed: callers usually send the same. */
let lastText = '';
let lastMs: number | undefined;

/** Milliseconds; undefined for an invalid text. */
export function parseGrpcTimeout(text: string): number | undefined {
  if (text !== lastText) {
    lastText = text;
    lastMs = parse(text);
  }
  return lastMs;
}

function parse(text: string): number | undefined {
  const factor = msOfUnit[text.slice(-1)];
  const digits = text.slice(0, -1);
  return factor !== undefined && /^\d{1,8}$/.test(digits) ? Number(digits) * factor : undefined;
}
