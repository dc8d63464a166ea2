// Builds real controller classes from a case's description of a tree. The arguments of each call are logged, since not
// every answer contains them.
import Type from 'typebox';
import { Controller } from '../../../shared/router/controller.ts';
import {
  AccessDenied,
  HttpError,
  NotImplemented,
  Redirect,
  Stop,
} from '../../../shared/router/errors.ts';
import { basic, bearer, type Guard, isSameSecret } from '../../../shared/router/guard.ts';
import { type Op, op } from '../../../shared/router/op.ts';
import { named, optional, part } from '../../../shared/router/path-part.ts';
import { parseMediaType, splitOutsideQuotes } from '../../../shared/router/request/media-type.ts';
import type { ModuleTree } from '../../../shared/router/table/module-tree.ts';
import type {
  ClassesSpec,
  ClassSpec,
  Effect,
  MethodSpec,
  ModulesSpec,
  ParamSpec,
  RaiseSpec,
} from './case-file.ts';

export interface Call {
  readonly handler: string;
  readonly bound: Readonly<Record<string, unknown>>;
}

type AnyClass = new (...args: never[]) => object;

export function buildTree(modules: ModulesSpec, record: (call: Call) => void): ModuleTree {
  return new Map(
    Object.entries(modules).map(([module, { classes = {} }]) => [
      module,
      buildClasses(classes, `${module}:`, record),
    ]),
  );
}

function buildClasses(
  classes: ClassesSpec,
  path: string,
  record: (call: Call) => void,
): Record<string, AnyClass> {
  const built: Record<string, AnyClass> = {};
  const build = (name: string): AnyClass => {
    const spec = classes[name];
    if (spec === undefined) throw new Error(`the tree has no class ${name}`);
    const base = spec.extends === undefined ? undefined : build(spec.extends);
    built[name] ??= buildClass(spec, `${path}${name}`, base, record);
    return built[name];
  };
  for (const name of Object.keys(classes)) build(name);
  return built;
}

function buildClass(
  spec: ClassSpec,
  path: string,
  base: AnyClass | undefined,
  record: (call: Call) => void,
): AnyClass {
  const parent = (base ?? (spec.plain === true ? Object : Controller)) as typeof Controller;
  const built = class extends parent {};
  const statics: Record<string, unknown> = {
    ...buildClasses(spec.classes ?? {}, `${path}.`, record),
    ...(spec.private === undefined ? {} : { private: spec.private }),
    ...(spec.cors === undefined ? {} : { cors: spec.cors }),
  };
  for (const [name, method] of Object.entries(spec.methods ?? {})) {
    statics[name] = toOp(name, method);
    const run = toMethod(`${path}.${name}`, method, record);
    Object.defineProperty(built.prototype, name, { value: run, configurable: true });
  }
  for (const [name, value] of Object.entries(statics))
    Object.defineProperty(built, name, { value, configurable: true });
  return built;
}

function toOp(name: string, method: MethodSpec): Op {
  const params = method.params ?? [];
  const keywords = params.filter(({ kind }) => kind === 'keyword');
  const rest = params.find(({ kind }) => kind === 'rest');
  const others = params.some(({ kind }) => kind === 'rest_keyword');
  const fields = Type.Object(
    Object.fromEntries(keywords.map((param) => [param.name, toSchema(param)])),
    { additionalProperties: others },
  );
  const guard = method.guard && toGuard(method.guard);
  return op({
    path: params.flatMap((param) => {
      if (param.kind !== 'positional' && param.kind !== 'either') return [];
      const make = param.kind === 'either' ? named : part;
      const entry = make(param.name, toSchema(param));
      return ['default' in param ? optional(entry) : entry];
    }),
    ...(rest === undefined ? {} : { rest: toSchema(rest) }),
    ...(/^(?:GET|DELETE|HEAD|OPTIONS)/.test(name) ? { query: fields } : { body: fields }),
    aliases: Object.fromEntries(keywords.map(({ name, aliases = [] }) => [name, aliases])),
    ...(guard === undefined ? { public: true } : { guard }),
  });
}

function toGuard(guard: NonNullable<MethodSpec['guard']>): Guard {
  if (guard.kind === 'bearer') return bearer((token) => isSameSecret(token, guard.token));
  return basic((user, password) => user === guard.user && isSameSecret(password, guard.password));
}

function toSchema(param: ParamSpec): Type.TSchema {
  const { type, choices, min_size: min, max_size: max, regex } = param;
  const given = 'default' in param ? { default: param.default } : {};
  const size = (least: string, most: string) => ({
    ...(min === undefined ? {} : { [least]: min }),
    ...(max === undefined ? {} : { [most]: max }),
  });
  if (choices !== undefined) return Type.Enum([...choices], given);
  const list = /^list<(\w+)>$/.exec(type ?? '')?.[1];
  if (list !== undefined) {
    const items = toSchema({ ...param, type: list, default: undefined });
    return Type.Array(items, { ...given, explode: false });
  }
  if (type === 'integer') return Type.Integer({ ...given, ...size('minimum', 'maximum') });
  if (type === 'number') return Type.Number({ ...given, ...size('minimum', 'maximum') });
  if (type === 'boolean') return Type.Boolean(given);
  if (type === 'string') {
    const pattern = regex === undefined ? {} : { pattern: regex };
    return Type.String({ ...given, ...pattern, ...size('minLength', 'maxLength') });
  }
  return Type.Unknown(given);
}

function toMethod(handler: string, method: MethodSpec, record: (call: Call) => void) {
  function run(this: Controller, fields: Record<string, unknown>, ...args: unknown[]): unknown {
    const bound = bind(method.params ?? [], fields, args);
    record({ handler, bound });
    if (method.set_status !== undefined) this.response.status = method.set_status;
    for (const [name, value] of Object.entries(method.set_headers ?? {}))
      this.response.headers.set(name, value);
    if (method.set_media_type !== undefined) this.response.mediaType = method.set_media_type;
    const does = method.does ?? 'echo';
    if (does === 'accept_version') return { version: acceptVersion(this.request.headers) };
    return does === 'echo' ? { handler, params: bound } : effect(does);
  }
  return method.async === true
    ? async function (this: Controller, fields: Record<string, unknown>, ...args: unknown[]) {
        return run.call(this, fields, ...args);
      }
    : run;
}

function bind(
  params: readonly ParamSpec[],
  fields: Readonly<Record<string, unknown>>,
  args: readonly unknown[],
): Record<string, unknown> {
  const left = { ...fields };
  const positionals = [...args];
  const bound: Record<string, unknown> = {};
  for (const { name, kind } of params) {
    if (kind === 'positional' || kind === 'either') bound[name] = show(positionals.shift());
    else if (kind === 'rest') bound[name] = positionals.splice(0).map(show);
    else if (kind === 'keyword') bound[name] = show(left[name]);
    if (kind === 'keyword') delete left[name];
  }
  for (const { name, kind } of params) if (kind === 'rest_keyword') bound[name] = show(left);
  return bound;
}

/** The `version` of the best-weighted Accept entry that has one, as a method can read it. */
function acceptVersion(headers: Headers): string {
  let best = { weight: 0, version: '' };
  for (const entry of splitOutsideQuotes(headers.get('accept') ?? '', ',')) {
    const parameters = parseMediaType(entry)?.parameters;
    const version = parameters?.get('version');
    if (parameters === undefined || version === undefined) continue;
    const weight = Number(parameters.get('q') ?? '1');
    if (weight > best.weight) best = { weight, version };
  }
  return best.version;
}

function show(value: unknown): unknown {
  if (value instanceof File) return { file: value.name, size: value.size };
  if (Array.isArray(value)) return value.map(show);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, show(inner)]));
}

function effect(does: Effect): unknown {
  if (does.raise !== undefined) throw toError(does.raise);
  if (does.return_bytes !== undefined) return Buffer.from(does.return_bytes, 'base64');
  if (does.return_file !== undefined)
    return new File([Buffer.from(does.return_file.base64, 'base64')], does.return_file.name);
  if (does.return_stream !== undefined) return iterate(does.return_stream);
  return does.return;
}

function* iterate(items: readonly unknown[]) {
  yield* items;
}

function toError(raise: RaiseSpec): Error {
  const { kind, status, message, headers, body, location, scheme, realm } = raise;
  const detail = message === undefined ? {} : { detail: message };
  if (kind === 'http')
    return new HttpError(status ?? 500, { ...detail, ...(headers && { headers }), body });
  if (kind === 'stop') return new Stop(status ?? 200, body);
  if (kind === 'redirect') return new Redirect(location ?? '/', status);
  if (kind === 'denied') return new AccessDenied({ scheme: scheme ?? '', realm, ...detail });
  if (kind === 'not_implemented') return new NotImplemented(message);
  return kind === 'type_error' ? new TypeError(message) : new Error(message);
}
