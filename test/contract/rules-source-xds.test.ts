// The rules source contract for a management server.
import test from 'ava';
import { createRegistry } from '../../worker/metrics/registry.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { limitResource, startScriptedAdsServer } from '../support/scripted-ads-server.ts';
import { createSourceUnderTest } from '../support/xds-source-run.ts';
import { testRulesSource } from './rules-source.ts';

testRulesSource(test, {
  name: 'xDS',
  async open(t, first) {
    let limits = first;
    let version = 0;
    const server = await startScriptedAdsServer(t);
    const send = () => {
      version++;
      const resources = Object.entries(limits).map(([domain, limit]) =>
        limitResource(domain, domain, limit === 'bad' ? undefined : limit),
      );
      server.streams.at(-1)?.send(String(version), String(version), resources);
    };
    void server.stream(0).then(send, () => {});
    const log = createRecordedLog();
    const metrics = createRegistry({ runtimeNamesMax: 0, log });
    const source = createSourceUnderTest({ server: { url: server.url } }, { log, metrics });
    return {
      source,
      put(next) {
        limits = next;
        send();
      },
    };
  },
});
