// What an engine is called with besides its address: a password, and the TLS files. Files are read at each call, so
// that renewed ones apply from the next call on.
import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { AppError, errorText } from '../../../../shared/errors.ts';
import { maskFile } from '../../../../shared/settings/shown-value.ts';
import { readSecretFile } from '../../../../shared/small-file.ts';
import { readTlsFiles, type TlsFiles } from '../../../../shared/tls.ts';
import { trimEnd } from '../../../../shared/trim-end.ts';
import type { ComparedClocks } from '../../compared-clocks.ts';
import { callJson, type JsonAnswer, type JsonCall } from '../../json-call.ts';

export interface EngineAccess {
  /** '' if there is no password, or if it is in `passwordFile`. */
  readonly password: string;
  readonly passwordFile: string | undefined;
  readonly tls: TlsFiles;
}

const maxPasswordBytes = 4096;

/** Undefined if there is no password. Rejects with an AppError `store` that names the file. */
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

/** Without a configured CA, those of the system are trusted. Rejects with an AppError `store` that names the file. */
export async function readEngineTls(access: EngineAccess): Promise<JsonCall['tls']> {
  const reading = await readTlsFiles(access.tls);
  if (!reading.ok) throw new AppError('store', reading.problem);
  const { ca, cert, key } = reading.material;
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

/** Exceeds the largest value of etcd and of a ConfigMap, in base64. */
const maxAnswerBytes = 4 * 1024 * 1024;
const maxMessageLength = 300;

/** `name`: the name of the engine, whose clock is compared with this machine's. */
export async function callEngine(
  url: URL,
  call: Omit<JsonCall, 'maxAnswerBytes'>,
  { name, clocks }: { readonly name: string; readonly clocks: ComparedClocks | undefined },
): Promise<JsonAnswer> {
  const compare = clocks?.start();
  const answer = await callJson(url, { ...call, maxAnswerBytes });
  compare?.(name, answer.date);
  return answer;
}

/** `engine`: the program that should have answered. Throws an AppError `store` if it has refused the call, or if
 * another program answers. */
export function readAnswer<Schema extends TSchema>(
  answer: JsonAnswer,
  schema: Schema,
  engine: string,
): Static<Schema> {
  const { status, value } = answer;
  if (status !== 200 && status !== 201) throw new AppError('store', showFailure(answer));
  if (Value.Check(schema, value)) return value;
  throw new AppError('store', `the server that answers is not ${engine}`);
}

/** Formats an engine's answer to a failed call: `HTTP 403: etcdserver: permission denied`. */
export function showFailure({ status, value }: JsonAnswer): string {
  const message =
    typeof value === 'object' && value !== null && 'message' in value ? value.message : undefined;
  return typeof message === 'string'
    ? `HTTP ${status}: ${message.slice(0, maxMessageLength)}`
    : `HTTP ${status}`;
}
