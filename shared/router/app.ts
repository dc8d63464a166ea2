// The application: controllers found, the table built, and one entry for each kind of server.

import { type ReportError, writeErrorReport } from './answer/error-report.ts';
import { createSchemaCompiler } from './arguments/schema.ts';
import type { OpenApiDocument, OpenApiFrame } from './controller.ts';
import { type Cors, corsProblem } from './cors.ts';
import { createDispatch } from './dispatch.ts';
import { StartError } from './errors.ts';
import type { Guard } from './guard.ts';
import { defaultLimits, type Limits, refuseWrongLimits } from './limits.ts';
import { createLiveConnections } from './live/live-connections.ts';
import { createFetch, type Fetch } from './mounts/fetch.ts';
import { createListener, type Listener, type Upgrade } from './mounts/node-http.ts';
import { loadUpgrade } from './mounts/upgrade.ts';
import { refuseUnknownNames } from './near-names.ts';
import type { ServedMethod } from './op.ts';
import { toOpenApi } from './openapi/openapi.ts';
import { createBodyReader } from './request/body.ts';
import { createForwarding } from './request/forwarded.ts';
import type { JsonParser } from './request/json.ts';
import { type BodyKind, bodyKinds } from './request/media-type.ts';
import type { Around, Dispatch } from './request/request.ts';
import { choosePrefixes, type ModuleTree, readModuleTree } from './table/module-tree.ts';
import { listRoutes } from './table/route-list.ts';
import { buildTable } from './table/table.ts';

export interface AppOptions {
  /** Folders of controllers, of which the later one wins. Default: from `env`, else `controllers`. */
  readonly controllerPrefix?: string | readonly string[];
  /** Environment with ENDPOINTS_PREFIX, usually the process's. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Replaces reading folders: the modules of a prefix, for bundles. */
  readonly loadModules?: (prefix: string) => ModuleTree | Promise<ModuleTree>;
  /** Guards that run before those of classes and methods. */
  readonly guard?: Guard | readonly Guard[];
  /** Surrounds every request, also one that no method answers. Outside of those of folders; of several the first is
   * outermost. */
  readonly around?: Around | readonly Around[];
  /** The app does not start while a method has neither a guard that authenticates nor `open()`. Without it, such a
   * class is a warning where another one has a guard. `public: true` is as good as `open()`. */
  readonly requireGuards?: boolean;
  /** Default for classes that do not declare their own. */
  readonly cors?: Cors;
  readonly limits?: Partial<Limits>;
  /** Kinds of body that are accepted, all by default. XML is allowed per class. */
  readonly bodyKinds?: readonly BodyKind[];
  /** Parses JSON bodies of more than 128 KiB, so that a thread with other requests need not wait for it. Throws 400. */
  readonly largeJson?: JsonParser;
  /** Only the canonical spelling of a name is served: kebab-case, lower case. */
  readonly strictNames?: boolean;
  /** Status for a verb that a class does not have: 405 with Allow (the default), or 501 without. */
  readonly missingVerb?: 405 | 501;
  /** How a text is sent where its method names no media type: JSON (the default), or raw. */
  readonly stringReturn?: 'application/json' | 'text/html';
  /** Formats of texts beside the known ones. `{ sku: (text) => /^[a-z]{2}-\d{4}$/.test(text) }` is for
   * `Type.String({ format: 'sku' })`. */
  readonly formats?: Readonly<Record<string, (text: string) => boolean>>;
  /** Networks of proxies whose reports of the client are believed, `['10.0.0.0/8']`. In `Forwarded`, or else in
   * `X-Forwarded-For`, `-Host` and `-Proto`. */
  readonly trustedProxies?: readonly string[];
  /** The title and version of the OpenAPI document. */
  readonly info?: OpenApiFrame['info'];
  readonly servers?: OpenApiFrame['servers'];
  readonly otherPaths?: OpenApiFrame['otherPaths'];
  /** Called at the start for each class that is hidden, or has no guard. Default: a line on standard error. */
  readonly warn?: (text: string) => void;
  /** Called for requests that fail because of us. Default: a JSON line on standard error. */
  readonly reportError?: ReportError;
}

type Settings = Required<Omit<AppOptions, 'cors' | 'largeJson'>> & {
  readonly cors: Cors | undefined;
  readonly largeJson: JsonParser | undefined;
};

/** Lists every name, so that a misspelt one is detected. */
const defaults: Settings = {
  controllerPrefix: [],
  env: {},
  loadModules: readModuleTree,
  guard: [],
  around: [],
  requireGuards: false,
  cors: undefined,
  limits: {},
  bodyKinds,
  largeJson: undefined,
  strictNames: false,
  missingVerb: 405,
  stringReturn: 'application/json',
  formats: {},
  trustedProxies: [],
  info: { title: 'API', version: '0.0.0' },
  servers: [],
  otherPaths: {},
  warn: writeWarning,
  reportError: writeErrorReport,
};

export interface App {
  readonly dispatch: Dispatch;
  /** For `node:http` and compatible servers. */
  readonly listener: Listener;
  /** For servers with the WHATWG fetch interface. */
  readonly fetch: Fetch;
  /** The OpenAPI 3.1 document: the same for the same controllers. */
  readonly describe: () => OpenApiDocument;
  /** Every method that is served. */
  readonly routes: readonly ServedMethod[];
  readonly limits: Limits;
  /** Opens WebSockets; undefined if no class has CONNECT. */
  readonly upgrade: Upgrade | undefined;
  /** Ends events and WebSockets, and opens no other: for a server that is about to close. */
  endLive(): void;
}

/** Rejects with a StartError that names every reason why it cannot serve. */
export async function createApp(options: AppOptions = {}): Promise<App> {
  const { forward, ...settings } = readOptions(options);
  const limits: Limits = { ...defaultLimits, ...settings.limits };
  const trees: ModuleTree[] = [];
  for (const prefix of choosePrefixes(settings.controllerPrefix, settings.env)) {
    trees.push(await settings.loadModules(prefix));
  }
  const compiler = createSchemaCompiler(settings.formats);
  const table = buildTable(trees, { ...settings, compiler, limits });
  await compiler.load();
  const routes = listRoutes(table);
  const live = createLiveConnections(limits.liveConnections);
  let document: OpenApiDocument | undefined;
  const describe = () => {
    document ??= toOpenApi(routes, settings);
    return document;
  };
  const answer = createDispatch({
    ...settings,
    table,
    limits,
    readBody: createBodyReader(settings.bodyKinds, settings.largeJson),
    xml: routes.some(({ route }) => route.xml) ? await import('./xml/xml.ts') : undefined,
    describe,
    live,
  });
  const dispatch: Dispatch = forward === undefined ? answer : (request) => answer(forward(request));
  const hasSockets = routes.some(({ route }) => route.socket !== undefined);
  return {
    dispatch,
    listener: createListener(dispatch),
    fetch: createFetch(dispatch),
    describe,
    routes,
    limits,
    upgrade: hasSockets ? await loadUpgrade(dispatch, limits) : undefined,
    endLive: live.endAll,
  };
}

/** Throws a StartError for an unknown option, and for an invalid value. */
function readOptions(
  options: AppOptions,
): Settings & { readonly forward: ReturnType<typeof createForwarding> } {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const settings: Settings = { ...defaults, ...Object.fromEntries(given) };
  try {
    refuseUnknownNames('createApp', options, Object.keys(defaults));
    const wrong = corsProblem(settings.cors);
    if (wrong !== undefined) throw new TypeError(`the application: ${wrong}`);
    refuseWrongLimits('limits of the application', settings.limits, defaultLimits);
    return { ...settings, forward: createForwarding(settings.trustedProxies) };
  } catch (cause) {
    throw new StartError([String((cause as Error).message)], { cause });
  }
}

function writeWarning(text: string): void {
  process.stderr.write(`warning: ${text}\n`);
}
