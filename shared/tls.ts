// The files of TLS: CAs, a certificate chain and its private key, read as one consistent set, and read again when they
// change.
import { createHash, X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates } from 'node:tls';
import { type Clock, repeatAfter } from './clock.ts';
import { errorText } from './errors.ts';
import { maskFile } from './settings/shown-value.ts';
import { readBeginning } from './small-file.ts';

/** Paths; undefined if there is no such file. A certificate and its key are given together. */
export interface TlsFiles {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** The files' contents. */
export interface TlsMaterial {
  readonly ca: Buffer | undefined;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
}

export type TlsReading =
  | { readonly ok: true; readonly material: TlsMaterial }
  | {
      readonly ok: false;
      /** Human-readable: names the file, without its content. */
      readonly problem: string;
    };

/** A certificate file is never larger: a larger one is a wrong path. */
const maxFileBytes = 4 * 1024 * 1024;

/** Reads all files and checks that they match. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsReading> {
  const [ca, cert, key] = await Promise.all([
    readTlsFile(files.ca),
    readTlsFile(files.cert),
    readTlsFile(files.key, maskFile),
  ]);
  for (const file of [ca, cert, key]) if (file?.problem !== undefined) return bad(file.problem);
  const material = { ca: ca?.content, cert: cert?.content, key: key?.content };
  return checkMaterial(files, material) ?? { ok: true, material };
}

interface ReadFile {
  readonly content?: Buffer;
  readonly problem?: string;
}

/** `toShown` formats the path for problems. */
async function readTlsFile(
  path: string | undefined,
  toShown = (path: string) => path,
): Promise<ReadFile> {
  if (path === undefined) return {};
  const shown = toShown(path);
  try {
    const content = await readBeginning(path, maxFileBytes, shown);
    if (content.length <= maxFileBytes) return { content };
    return { problem: `${shown} is too large for a certificate or a key` };
  } catch (error) {
    return { problem: `${shown} cannot be read (${errorText(error)})` };
  }
}

function checkMaterial(
  { ca, cert, key }: TlsFiles,
  material: TlsMaterial,
): (TlsReading & { readonly ok: false }) | undefined {
  // A secure context silently accepts an invalid CA, and then trusts no certificate.
  const wrongCa = failureOf(() => material.ca && new X509Certificate(material.ca));
  if (wrongCa !== undefined) return bad(`${ca} is not a certificate (${wrongCa})`);
  const wrongPair = failureOf(() =>
    createSecureContext({ cert: material.cert, key: material.key }),
  );
  return wrongPair === undefined
    ? undefined
    : bad(`${cert} and ${maskFile(key ?? '')} cannot be used (${wrongPair})`);
}

function failureOf(task: () => unknown): string | undefined {
  try {
    task();
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

function bad(problem: string): TlsReading & { readonly ok: false } {
  return { ok: false, problem };
}

/** When the first certificate of a chain expires, in milliseconds since the epoch; undefined without one. */
export function findExpiryMs({ cert }: TlsMaterial): number | undefined {
  const chain = cert?.toString().match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs);
  if (!chain) return undefined;
  return Math.min(...chain.map((text) => new X509Certificate(text).validToDate.getTime()));
}

/** The CAs that this host trusts plus `ca`, in PEM. */
export function withTrustedCas(ca: Buffer | undefined): Buffer {
  const trusted = new Set([...getCACertificates('default'), ...getCACertificates('system')]);
  return Buffer.concat([Buffer.from(`${[...trusted].join('\n')}\n`), ca ?? Buffer.alloc(0)]);
}

/** The text of a TLS error without Node's advice on making its own command line trust a CA. */
export function withoutNodeAdvice(text: string): string {
  return text.replace(/; if the root CA is installed locally.*/s, '');
}

export interface TlsWatchDeps {
  readonly files: TlsFiles;
  /** The material in use when the watch begins. */
  readonly material: TlsMaterial;
  readonly clock: Clock;
  /** How often the files are read. Not every change of a mounted secret raises an event. */
  readonly intervalMs: number;
  /** Called when the files have changed and match. Throws when they cannot be used nevertheless. */
  readonly onChange: (material: TlsMaterial) => void;
  /** Called once for each different problem: the files have changed and cannot be used. */
  readonly onProblem: (problem: string) => void;
}

/**
 * Follows the files. While they cannot be used, for example between writing a certificate and its key, the previous
 * ones stay in use.
 */
export class TlsWatch {
  readonly #onChange;
  readonly #onProblem;
  #inUse;
  #expiryMs;
  #refused: string | undefined;
  #problem: string | undefined;
  #isClosed = false;
  readonly #stop;

  constructor(deps: TlsWatchDeps) {
    this.#onChange = deps.onChange;
    this.#onProblem = deps.onProblem;
    this.#inUse = fingerprint(deps.material);
    this.#expiryMs = findExpiryMs(deps.material);
    this.#stop = repeatAfter(deps.clock, deps.intervalMs, async () => {
      const reading = await readTlsFiles(deps.files);
      if (!this.#isClosed) this.#accept(reading);
    });
  }

  #accept(reading: TlsReading): void {
    if (!reading.ok) {
      this.#refuse(reading.problem);
      return;
    }
    const found = fingerprint(reading.material);
    if (found === this.#refused) return;
    this.#refused = undefined;
    if (found !== this.#inUse) {
      try {
        this.#onChange(reading.material);
      } catch (error) {
        this.#refused = found;
        this.#refuse(errorText(error));
        return;
      }
      this.#inUse = found;
      this.#expiryMs = findExpiryMs(reading.material);
    }
    this.#problem = undefined;
  }

  #refuse(reason: string): void {
    if (reason === this.#problem) return;
    this.#problem = reason;
    this.#onProblem(reason);
  }

  /** When the first certificate in use expires, in milliseconds since the epoch; undefined without one. */
  get expiryMs(): number | undefined {
    return this.#expiryMs;
  }

  /** Why the current files are not in use; undefined while they are. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Stops all callbacks. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#stop();
  }
}

function fingerprint({ ca, cert, key }: TlsMaterial): string {
  const hash = createHash('sha256');
  for (const content of [ca, cert, key]) {
    hash.update(`${content?.length ?? 'none'}\n`).update(content ?? '');
  }
  return hash.digest('base64');
}
