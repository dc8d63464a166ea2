// The rules source contract for files that change in place.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { createRegistry } from '../../worker/metrics/registry.ts';
import { FileSource } from '../../worker/rules-source/file-source.ts';
import { createLoadRules } from '../../worker/rules-source/load-rules.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { testRulesSource } from './rules-source.ts';

testRulesSource(test, {
  name: 'files',
  async open(t, first) {
    const folder = createRulesFolder(t);
    const directory = join(folder.path, 'config');
    mkdirSync(directory);
    const put = (limits: typeof first) => {
      for (const [domain, limit] of Object.entries(limits)) {
        const text = ruleText(domain, limit === 'bad' ? 1 : limit);
        folder.replace(`config/${domain}.yaml`, limit === 'bad' ? text.replace('year', 'x') : text);
      }
      for (const name of readdirSync(directory))
        if (!(name.replace('.yaml', '') in limits)) rmSync(join(directory, name));
    };
    put(first);
    const log = createRecordedLog();
    const source = new FileSource({
      options: {
        root: folder.path,
        subdirectory: '',
        appDirectory: 'config',
        ignoreDotFiles: false,
        watchRoot: false,
      },
      load: createLoadRules(
        createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false }),
      ),
      metrics: createRegistry({ runtimeNamesMax: 0, log }),
      log,
      clock: systemClock,
    });
    return { source, put };
  },
});
