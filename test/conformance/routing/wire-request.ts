// Converts a case's request to its wire form: method, raw target, headers and bytes.
import type { MultipartSpec, RequestSpec } from './case-file.ts';

export type WireRequest = ReturnType<typeof toWireRequest>;

const boundary = 'routing-case-boundary';

export function toWireRequest(spec: RequestSpec) {
  const body = toBody(spec);
  return {
    method: spec.method,
    target: spec.query === undefined ? spec.path : `${spec.path}?${spec.query}`,
    headers: {
      ...(body?.type === undefined ? {} : { 'content-type': body.type }),
      ...spec.headers,
    },
    body: body && Buffer.from(body.text),
  };
}

function toBody(spec: RequestSpec): { text: string; type?: string } | undefined {
  if ('json' in spec) return { text: JSON.stringify(spec.json), type: 'application/json' };
  if (spec.form !== undefined) {
    const form = new URLSearchParams();
    const pairs = Array.isArray(spec.form) ? spec.form : Object.entries(spec.form);
    for (const [name, values] of pairs)
      for (const value of [values].flat()) form.append(name, String(value));
    return { text: form.toString(), type: 'application/x-www-form-urlencoded' };
  }
  if (spec.multipart !== undefined) {
    const text = `${spec.multipart.map(toPart).join('')}--${boundary}--\r\n`;
    return { text, type: `multipart/form-data; boundary=${boundary}` };
  }
  return spec.raw === undefined ? undefined : { text: spec.raw };
}

function toPart({ name, value, filename, content_type: type }: MultipartSpec): string {
  const file = filename === undefined ? '' : `; filename="${filename}"`;
  const header = type === undefined ? '' : `Content-Type: ${type}\r\n`;
  return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n${header}\r\n${value}\r\n`;
}
