// The language-neutral routing cases as data: their format, and how a file is read.
import { readFile } from 'node:fs/promises';

export interface CaseFile {
  readonly trees: Readonly<Record<string, TreeSpec>>;
  readonly cases: readonly RoutingCase[];
}

export interface TreeSpec {
  readonly modules?: ModulesSpec;
  /** By prefix. */
  readonly roots?: Readonly<Record<string, ModulesSpec>>;
}

/** By module path; empty for the root module. */
export type ModulesSpec = Readonly<Record<string, { readonly classes?: ClassesSpec }>>;
export type ClassesSpec = Readonly<Record<string, ClassSpec>>;

export interface ClassSpec {
  readonly methods?: Readonly<Record<string, MethodSpec>>;
  readonly extends?: string;
  readonly private?: boolean;
  /** Not a controller. */
  readonly plain?: boolean;
  readonly classes?: ClassesSpec;
  readonly cors?: true | { readonly origins: readonly string[] };
}

export interface MethodSpec {
  readonly params?: readonly ParamSpec[];
  readonly async?: boolean;
  readonly guard?:
    | { readonly kind: 'bearer'; readonly token: string }
    | { readonly kind: 'basic'; readonly user: string; readonly password: string };
  readonly set_status?: number;
  readonly set_headers?: Readonly<Record<string, string>>;
  readonly set_media_type?: string;
  readonly does?: 'echo' | 'accept_version' | Effect;
}

export interface Effect {
  readonly return?: unknown;
  readonly return_bytes?: string;
  readonly return_file?: { readonly name: string; readonly base64: string };
  readonly return_stream?: readonly unknown[];
  readonly raise?: RaiseSpec;
}

export interface RaiseSpec {
  readonly kind: string;
  readonly status?: number;
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly location?: string;
  readonly scheme?: string;
  readonly realm?: string;
}

export interface ParamSpec {
  readonly name: string;
  readonly kind: 'positional' | 'either' | 'rest' | 'keyword' | 'rest_keyword';
  readonly type?: string;
  /** If present, the parameter is optional. */
  readonly default?: unknown;
  readonly choices?: readonly string[];
  readonly min_size?: number;
  readonly max_size?: number;
  readonly regex?: string;
  readonly aliases?: readonly string[];
}

export interface RoutingCase {
  readonly id: string;
  readonly title: string;
  readonly tree: string;
  readonly request: RequestSpec;
  readonly settings?: SettingsSpec;
  /** If absent, the case runs on all mounts. */
  readonly mounts?: readonly string[];
  readonly expect: Expectation;
}

export interface RequestSpec {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly form?:
    | Readonly<Record<string, string | readonly string[]>>
    | readonly (readonly [string, string])[];
  readonly raw?: string;
  readonly multipart?: readonly MultipartSpec[];
}

export interface MultipartSpec {
  readonly name: string;
  readonly value: string;
  readonly filename?: string;
  readonly content_type?: string;
}

export interface SettingsSpec {
  readonly missing_verb?: 405 | 501;
  readonly string_return?: 'application/json' | 'text/html';
  readonly body_limit?: number;
  readonly prefix?: PrefixSpec;
}

export interface PrefixSpec {
  readonly constructor?: string | readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cli?: string | readonly string[];
}

export interface Expectation {
  readonly status: number;
  readonly handler?: string;
  readonly bound?: unknown;
  readonly media_type?: string;
  readonly no_charset?: boolean;
  readonly json?: unknown;
  readonly text?: string;
  readonly base64?: string;
  readonly empty?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly allow?: readonly string[];
  readonly body_includes?: readonly string[];
  readonly body_excludes?: readonly string[];
}

const ownFile = new URL('cases.json', import.meta.url);

/** Lists under any key are cases. A file without trees uses those of the file next to this one. */
export async function readCaseFile(path: string | URL = ownFile): Promise<CaseFile> {
  const file = await readJson(path);
  const lists = Array.isArray(file) ? [file] : Object.values(file).filter(Array.isArray);
  const trees = 'trees' in file ? file['trees'] : (await readJson(ownFile))['trees'];
  return { trees: trees as CaseFile['trees'], cases: lists.flat() as RoutingCase[] };
}

async function readJson(path: string | URL): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
}
