// The manifest of the router's package. Its versions, and those of what it depends on, are those of the sources.

/** What it imports, in the version that it is tested with or newer; a test holds the names against the sources. */
const dependencies = [
  '@fastify/busboy',
  '@fastify/send',
  '@rgrove/parse-xml',
  'commander',
  'typebox',
  'ws',
];

const built = './dist/shared/router';
const entry = (path) => ({ types: `${built}/${path}.d.ts`, default: `${built}/${path}.js` });

export function createManifest(sources) {
  const { version, license, homepage, repository } = sources;
  return {
    name: 'ratelane-router',
    version,
    description: 'HTTP APIs by convention: modules and classes become paths, without a route table',
    license,
    homepage,
    repository,
    keywords: ['router', 'http', 'rest', 'convention', 'openapi', 'typescript', 'websocket'],
    type: 'module',
    engines: { node: '>=22.18' },
    bin: { 'ratelane-router': `${built}/command/main.js` },
    // The client has an entry of its own, for pages: they cannot load what is for servers.
    exports: { '.': entry('index'), './client': entry('client/client') },
    sideEffects: false,
    dependencies: Object.fromEntries(
      dependencies.map((name) => [name, `^${sources.dependencies[name]}`]),
    ),
    peerDependencies: { fastify: '>=5' },
    peerDependenciesMeta: { fastify: { optional: true } },
  };
}
