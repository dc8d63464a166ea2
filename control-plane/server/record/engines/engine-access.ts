// What an engine is called with besides its address: a password, and the files of TLS. Files are read at each call,
// so that renewed ones are used from the next one on.
import { AppError, errorText } from '../../../../shared/errors.ts';
import { maskFile } from '../../../../shared/settings/shown-value.ts';
import { readSecretFile } from '../../../../shared/small-file.ts';
import { readTlsFiles, type TlsFiles } from '../../../../shared/tls.ts';
import { trimEnd } from '../../../../shared/trim-end.ts';
import { callJson, type JsonAnswer, type JsonCall } from '../../json-call.ts';

export interface EngineAccess {
  /** '' without a password, or when it is in `passwordFile`. */
  readonly password: string;
  readonly passwordFile: string | undefined;
  readonly tls: TlsFiles;
}

const maxPasswordBytes = 4096;

/** Undefined without a password. Rejects with an AppError `store` that names the file. */
export async function readEnginePassword(access: EngineAccess): Promise<string | undefined> {
  const { password, passwordFile } = access;
  if (passwordFile === undefined) return password === '' ? undefined : password;
  let text: string;
  try {
    text = trimEnd(await readSecretFile(passwordFile, maxPasswordBytes), '\r\n');
  } catch (error) {
    throw new AppError('store', `the password of --record cannot be read (${errorText(error)})`);
  }
  if (text !== '' && !/[\0\r\n]/.test(text)) return text;
  throw new AppError(
    'store',
    `${maskFile(passwordFile)} (--record-password-file) is empty or has several lines`,
  );
}

/** Without a CA of its own the system's are trusted. Rejects with an AppError `store` that names the file. */
export async function readEngineTls(access: EngineAccess): Promise<JsonCall['tls']> {
  const reading = await readTlsFiles(access.tls);
  if (!reading.ok) throw new AppError('store', reading.problem);
  const { ca, cert, key } = reading.material;
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

/** Above the largest value of etcd and of a ConfigMap, in base64. */
const maxAnswerBytes = 4 * 1024 * 1024;
const maxMessageLength = 300;

export function callEngine(url: URL, call: Omit<JsonCall, 'maxAnswerBytes'>): Promise<JsonAnswer> {
  return callJson(url, { ...call, maxAnswerBytes });
}

/** What an engine says of a call that failed: `HTTP 403: etcdserver: permission denied`. */
export function showFailure({ status, value }: JsonAnswer): string {
  const message =
    typeof value === 'object' && value !== null && 'message' in value ? value.message : undefined;
  return typeof message === 'string'
    ? `HTTP ${status}: ${message.slice(0, maxMessageLength)}`
    : `HTTP ${status}`;
}
