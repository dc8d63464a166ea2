// Determines which installed commands a test file needs, from its direct and indirect imports and the tools that it
// names.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';

/** A test that imports one of these files cannot run without the command, or one of them. */
const commandOf: Readonly<Record<string, string>> = {
  'test/support/redis-server.ts': 'redis-server',
  'test/support/memcached-server.ts': 'memcached',
  'test/support/git-repository.ts': 'git',
  'test/support/envoy.ts': 'envoy',
  'test/support/etcd-server.ts': 'etcd',
  'test/support/kubernetes-api-server.ts': 'kube-apiserver',
  'test/support/browser.ts': 'chromium-headless-shell|chromium',
};
/** `npm test` installs these. */
const quickCommands = ['redis-server', 'memcached', 'git'];
/** Single tests check for these themselves, and are skipped if they are missing. */
const toolFinder = 'test/support/installed-tool.ts';
const toolName =
  /'(?:chart-check|compose-spec|curl|grpcurl|h2load|h2spec|nghttp|promtool|proto-set)'/;

export interface TestNeeds {
  /** Commands without which the file cannot run at all. */
  readonly commands: readonly string[];
  /** Whether it needs more than `npm test` installs. */
  readonly areMany: boolean;
}

/** `root` is the project's folder; the requested paths are below it. */
export function createNeedsReader(root: string): (path: string) => TestNeeds {
  const texts = new Map<string, string>();
  const read = (path: string): string => {
    let text = texts.get(path);
    if (text === undefined) {
      text = readFileSync(join(root, path), 'utf8');
      texts.set(path, text);
    }
    return text;
  };
  return (path) => {
    const reached = new Set([path]);
    for (const each of reached)
      for (const imported of findImports(root, each, read(each))) reached.add(imported);
    const commands = [...reached].flatMap((each) => commandOf[each] ?? []);
    const usesTool = reached.has(toolFinder) && toolName.test(read(path));
    const areMany = usesTool || commands.some((command) => !quickCommands.includes(command));
    return { commands, areMany };
  };
}

/** Only within `test/`, since the programs' sources need no command. A text that a test plants may name missing
 * files. */
function findImports(root: string, path: string, text: string): string[] {
  return [...text.matchAll(/^(?:import .*|\} )from '(\.[^']+\.ts)';$/gm)]
    .map(([, specifier = '']) => join(dirname(path), specifier))
    .filter((imported) => imported.startsWith('test/') && existsSync(join(root, imported)));
}
