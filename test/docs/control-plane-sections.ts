// The generated sections of the control plane's documents: settings, commands, routes of the admin API, and metrics.
import type { Command } from 'commander';
import { createProgram } from '../../control-plane/command/program.ts';
import { createAdminApp } from '../../control-plane/server/admin/admin-app.ts';
import { createControlPlaneMetrics } from '../../control-plane/server/metrics/metrics.ts';
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { bearer } from '../../shared/router/index.ts';
import { toMarkdown } from '../../worker/settings/document.ts';
import { type GeneratedSection, toTable } from './generated-section.ts';

const inDocs = (name: string) => new URL(`../../control-plane/docs/${name}`, import.meta.url);

export async function createControlPlaneSections(): Promise<readonly GeneratedSection[]> {
  return [
    {
      document: new URL('../../worker/docs/settings.md', import.meta.url),
      mark: 'control-plane-settings',
      text: toMarkdown(controlPlaneTable),
    },
    { document: inDocs('commands.md'), mark: 'commands', text: await toCommandTable() },
    { document: inDocs('admin-api.md'), mark: 'routes', text: await toRouteTable() },
    { document: inDocs('operating.md'), mark: 'metrics', text: await toMetricsTable() },
  ];
}

async function toCommandTable(): Promise<string> {
  const program = await createProgram({
    io: {
      write() {},
      writeError() {},
      isTerminal: false,
      environment: {},
      clock: { wallMs: () => 0, monotonicMs: () => 0, after: () => () => {} },
    },
    finish() {},
    fail() {},
  });
  const commands = program.commands.filter((command) => command.name() !== 'help');
  const uses = commands.map((command) => [toUsage(command), command.summary()]);
  return toTable(['Command', 'Does'], uses);
}

function toUsage(command: Command): string {
  const given = command.registeredArguments.map((argument) => {
    const text = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return argument.required ? `<${text}>` : `[${text}]`;
  });
  return `\`${[command.name(), ...given].join(' ')}\``;
}

interface Operation {
  readonly summary?: string;
  readonly security?: readonly unknown[];
}

async function toRouteTable(): Promise<string> {
  const app = await createAdminApp({ api: undefined, guard: bearer() });
  const { paths } = app.describe() as { paths: Record<string, Record<string, Operation>> };
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { summary = '', security }]) => [
      `\`${method.toUpperCase()} ${path}\``,
      security?.length ? summary : `${summary} (without a token)`,
    ]),
  );
  return toTable(['Request', 'Does'], rows);
}

async function toMetricsTable(): Promise<string> {
  const { text } = await createControlPlaneMetrics(() => nothingYet).expose();
  const kinds = new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, ...pair]) => pair as [string, string]),
  );
  const rows = [...text.matchAll(/^# HELP (ratelane_\S+) (.*)$/gm)].map(
    ([, name = '', help = '']) => {
      const labels = new RegExp(`^${name}\\{([a-z_]+)=`, 'm').exec(text)?.[1];
      return [
        `\`${name}${labels === undefined ? '' : `{${labels}}`}\``,
        kinds.get(name) ?? '',
        help,
      ];
    },
  );
  return toTable(['Name', 'Kind', 'Meaning'], rows);
}

const nothingYet = {
  revisionInForceAtMs: 0,
  isStale: false,
  newest: { isValid: true, isHeldBack: false, errors: 0, warnings: 0 },
  domains: 0,
  isStoreReachable: true,
  storeSuccessAtMs: 0,
  revisions: { accepted: 0, refused: 0, taken_back: 0 },
  rollout: undefined,
  certificates: {},
  isRecordShared: true,
  isForgetful: false,
  workers: { in_force: 0, pending: 0, refused: 0, gone: 0 },
};
