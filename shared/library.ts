// Loads a package where a synchronous call first needs it: one that few processes need costs the others no start.
import { createRequire } from 'node:module';

/** The package's exports. Only for packages that are listed in package.json. */
export const loadLibrary: (name: string) => unknown = createRequire(import.meta.url);
