// Runs one case on one mount, with its own application.
import { type AppOptions, createApp } from '../../../shared/router/app.ts';
import type { CaseFile, PrefixSpec, RoutingCase, SettingsSpec, TreeSpec } from './case-file.ts';
import { buildTree, type Call } from './controller-tree.ts';
import { differences } from './differences.ts';
import { type MountName, startMount } from './mounts.ts';
import { toWireRequest } from './wire-request.ts';

/** How the answer differs from what the case expects; empty if it does not. */
export async function runCase(
  file: CaseFile,
  routingCase: RoutingCase,
  mountName: MountName,
): Promise<readonly string[]> {
  const tree = file.trees[routingCase.tree];
  if (tree === undefined) return [`the file has no tree ${routingCase.tree}`];
  const calls: Call[] = [];
  const app = await createApp(toOptions(tree, routingCase.settings ?? {}, calls));
  const mount = await startMount(mountName, app);
  try {
    const response = await mount.send(toWireRequest(routingCase.request));
    return differences(routingCase.expect, response, calls);
  } finally {
    await mount.stop();
  }
}

function toOptions(tree: TreeSpec, settings: SettingsSpec, calls: Call[]): AppOptions {
  const {
    missing_verb: missingVerb,
    string_return: stringReturn,
    body_limit: bodyBytes,
  } = settings;
  // A Map, since every object has something called constructor. The command passes its --prefix to the constructor, so
  // it replaces that.
  const prefix = new Map(Object.entries(settings.prefix ?? {}));
  const controllerPrefix = (prefix.get('cli') ?? prefix.get('constructor')) as PrefixSpec['cli'];
  const env = prefix.get('env') as PrefixSpec['env'];
  return {
    ...(controllerPrefix === undefined ? {} : { controllerPrefix }),
    ...(env === undefined ? {} : { env }),
    ...(missingVerb === undefined ? {} : { missingVerb }),
    ...(stringReturn === undefined ? {} : { stringReturn }),
    ...(bodyBytes === undefined ? {} : { limits: { bodyBytes } }),
    // One tree of the cases has a module and a class with the same name, and expects the module.
    warn: () => {},
    loadModules: (name) => {
      const modules = tree.roots === undefined ? tree.modules : tree.roots[name];
      if (modules === undefined) throw new Error(`there is no prefix ${name}`);
      return buildTree(modules, (call) => calls.push(call));
    },
    reportError: () => {},
  };
}
