// The admin API as an application of the convention router, with the controllers of the folder controllers/.
// admin-server.ts serves it.
import { ownPath } from '../../../shared/own-files.ts';
import {
  type App,
  createApp,
  type Guard,
  type ReportError,
  readModuleTree,
} from '../../../shared/router/index.ts';
import type { AdminApi } from './admin-api.ts';
import { bindControllers } from './admin-controller.ts';
import { parseLargeJson } from './large-json.ts';
import { webhookPaths } from './webhook-route.ts';

export interface AdminAppDeps {
  /** Undefined if only the description is generated. */
  readonly api: AdminApi | undefined;
  readonly guard: Guard;
  readonly reportError?: ReportError;
}

/** Version prefix of all paths, which are also served without it. */
export const versionPrefix = '/v1';

/** A push contains all rules of a company; the store's own limits are not much higher. */
export const maxBodyBytes = 32 * 1024 * 1024;
/** The largest number of listeners to `/events`. */
export const maxListeners = 64;

export function createAdminApp({ api, guard, reportError }: AdminAppDeps): Promise<App> {
  return createApp({
    controllerPrefix: ownPath('control-plane/server/admin/controllers'),
    async loadModules(prefix) {
      const tree = await readModuleTree(prefix);
      return api === undefined ? tree : bindControllers(tree, api);
    },
    guard,
    requireGuards: true,
    // Forms and plain texts are excluded: pages of other sites could send them.
    bodyKinds: ['json'],
    largeJson: parseLargeJson,
    limits: { bodyBytes: maxBodyBytes, liveConnections: maxListeners },
    strictNames: true,
    info: {
      title: 'Ratelane admin API',
      version: '1',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      { url: versionPrefix, description: 'This version' },
      { url: '/', description: 'The same, for programs that were made before there were versions' },
    ],
    otherPaths: webhookPaths,
    ...(reportError && { reportError }),
  });
}
