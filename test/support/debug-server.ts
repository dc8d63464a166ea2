// The debug port, with only the contents that a test provides.
import { systemClock } from '../../shared/clock.ts';
import { createDebugServer, type DebugProviders } from '../../worker/listen/debug.ts';
import { createRecordedLog, type RecordedLog } from './recorded-log.ts';

type ServerOptions = Parameters<typeof createDebugServer>[1];

export function createTestDebugServer({
  providers,
  log = createRecordedLog(),
  ...options
}: Partial<ServerOptions> & {
  readonly providers?: Partial<DebugProviders>;
  readonly log?: RecordedLog;
}) {
  const nothing: DebugProviders = {
    rules: () => undefined,
    stats: () => new Map(),
    settings: () => [],
    status: () => [],
    unmatched: async () => [],
  };
  return createDebugServer(
    { providers: { ...nothing, ...providers }, log, clock: systemClock },
    { host: '127.0.0.1', port: 0, ...options },
  );
}
