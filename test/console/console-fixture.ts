// A control plane, workers that it configures, and a browser tab on its console.
import type { ExecutionContext } from 'ava';
import type { Clock } from '../../shared/clock.ts';
import { systemClock } from '../../shared/clock.ts';
import { type Locator, openTab, type Page, type Visit } from '../support/browser.ts';
import {
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createRulesFolder, type RulesFolder } from '../support/rules-folder.ts';
import { connectStreamWorker } from '../support/stream-worker.ts';
import { startWorker, type WorkerInProcess } from '../support/worker-in-process.ts';

export const sampleRules = `domain: d
descriptors:
  - key: customer
    metadata: { owner: checkout }
    rate_limit: { unit: year, requests_per_unit: 3 }
  - key: plan
    value: free
    descriptors:
      - key: checkout_by
        shadow_mode: true
        rate_limit: { unit: year, requests_per_unit: 20 }
`;

/** Reports are sent more often; reported values still stay for some time. */
const times = 3;
export const fastClock: Clock = {
  wallMs: systemClock.wallMs,
  monotonicMs: () => systemClock.monotonicMs() * times,
  after: (ms, task) => systemClock.after(ms / times, task),
};

export interface Console {
  readonly plane: ControlPlaneProcess;
  readonly rules: RulesFolder;
}

/** Starts a control plane with these files; `more` flags follow those of the folder. */
export async function startConsole(
  t: ExecutionContext,
  files: Readonly<Record<string, string>>,
  ...flags: readonly string[]
): Promise<Console> {
  const rules = createRulesFolder(t);
  for (const [name, text] of Object.entries(files)) rules.write(name, text);
  const all = ['--config-dir', rules.path, ...flags];
  const plane = await createControlPlaneProcess(t, { flags: all });
  await plane.start();
  return { plane, rules };
}

/** Starts a worker, and waits until it has its rules and reports. */
export async function startFed(
  t: ExecutionContext,
  { plane }: Pick<Console, 'plane'>,
  id: string,
  clock: Clock = fastClock,
): Promise<WorkerInProcess> {
  const worker = await startWorker(t, {
    clock,
    env: {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress,
      CONFIG_GRPC_XDS_NODE_ID: id,
      BACKEND_TYPE: 'memory',
    },
  });
  await eventually(`${id} reports`, async () => {
    const { body } = await plane.fetch('/workers');
    return body.workers?.some(
      (each: { id: string; figures: unknown }) => each.id === id && each.figures !== null,
    );
  });
  return worker;
}

/** Opens a page of the console, such as `rules?domain=shop`. */
export async function visit(t: ExecutionContext, { plane }: Console, where = ''): Promise<Visit> {
  const tab = await openTab(t);
  await tab.page.goto(consoleUrl(plane, where));
  return tab;
}

export function consoleUrl(plane: ControlPlaneProcess, where: string): string {
  return `${plane.adminUrl}/console/${where === '' ? '' : `#/${where}`}`;
}

/** The content of the page below its headline. */
export function readPage(page: Page): Promise<string> {
  return readPart(page.locator('main'));
}

async function readPart(part: Locator): Promise<string> {
  return (await part.innerText()).replaceAll(/\s+/g, ' ');
}

/** Waits for a text below the headline of a page, or in a part of it, and reports the actual text otherwise. */
export async function shows(where: Page | Locator, text: RegExp): Promise<void> {
  const read = () => ('goto' in where ? readPage(where) : readPart(where));
  await eventually(`${text} is shown`, async () => text.test(await read())).catch(
    async (error: Error) => {
      throw new Error(`${error.message}; it shows: ${await read()}`);
    },
  );
}

/** Waits for a line of the audit log: it is written at the end of the call, after its effect is visible. */
export function audited({ plane }: Pick<Console, 'plane'>, line: RegExp): Promise<void> {
  return eventually(`audited: ${line.source}`, () => line.test(plane.output()));
}

export interface Trial extends Console {
  /** One of them has the revision on trial. */
  readonly workers: readonly WorkerInProcess[];
}

/** Starts two workers, one of which receives a revision first, and one that dies before that. */
export async function startTrial(t: ExecutionContext, more = ''): Promise<Trial> {
  const base = `${sampleRules}${more}`;
  const served = await startConsole(t, { 'd.yaml': base }, '--rollout', 'canary=50%,hold=1h');
  const { plane, rules } = served;
  const doomed = connectStreamWorker(t, { address: plane.xdsAddress, id: 'doomed' });
  const workers = [await startFed(t, served, 'w-1'), await startFed(t, served, 'w-2')];
  await eventually('it has its rules', () => doomed.has('customer'));
  doomed.vanish();
  for (const worker of workers)
    for (let count = 0; count < 6; count++) await worker.decide('customer=ada');
  rules.replace('d.yaml', base.replace('per_unit: 3', 'per_unit: 4'));
  await eventually('one has it', async () => {
    const { rollout } = (await plane.fetch('/status')).body;
    return rollout?.workers.having === 1;
  });
  await eventually('ada is shown', async () => (await plane.fetch('/top')).body.values.length > 0);
  return { ...served, workers };
}
