// The sections of the worker's documents that come from its code: settings, statistics, errors.
import { errorFacts } from '../shared/errors.ts';
import { type GeneratedSection, toTable } from '../shared/generated-section.ts';
import { toMarkdown } from '../shared/settings/document.ts';
import { catalogue } from './metrics/catalogue.ts';
import { workerTable } from './settings/table.ts';

export const workerSections: readonly GeneratedSection[] = [
  {
    document: new URL('./docs/settings.md', import.meta.url),
    mark: 'settings',
    text: toMarkdown(workerTable),
  },
  {
    document: new URL('./docs/statistics.md', import.meta.url),
    mark: 'statistics',
    text: toTable(
      ['Name', 'Kind', 'Meaning'],
      catalogue.map(({ name, kind, meaning }) => [`\`${name}\``, kind, meaning]),
    ),
  },
  {
    document: new URL('./docs/operating.md', import.meta.url),
    mark: 'errors',
    text: toTable(
      ['Error', 'Meaning', 'gRPC', '`/json`', 'Admin API', 'What to do'],
      Object.entries(errorFacts).map(([code, { meaning, decision, adminStatus, whatToDo }]) => [
        `\`${code}\``,
        meaning,
        decision?.grpc ?? '',
        String(decision?.http ?? ''),
        String(adminStatus ?? ''),
        whatToDo,
      ]),
    ),
  },
];
