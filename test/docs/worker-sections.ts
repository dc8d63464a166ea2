// The generated sections of the worker's documents: settings, statistics, errors.
import { errorFacts } from '../../shared/errors.ts';
import { catalogue } from '../../worker/metrics/catalogue.ts';
import { toMarkdown } from '../../worker/settings/document.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { type GeneratedSection, toTable } from './generated-section.ts';

export const workerSections: readonly GeneratedSection[] = [
  {
    document: new URL('../../worker/docs/settings.md', import.meta.url),
    mark: 'settings',
    text: toMarkdown(workerTable),
  },
  {
    document: new URL('../../worker/docs/statistics.md', import.meta.url),
    mark: 'statistics',
    text: toTable(
      ['Name', 'Kind', 'Meaning'],
      catalogue.map(({ name, kind, meaning }) => [`\`${name}\``, kind, meaning]),
    ),
  },
  {
    document: new URL('../../worker/docs/operating.md', import.meta.url),
    mark: 'errors',
    text: toTable(
      ['Error', 'Meaning', 'Admin API', 'What to do'],
      Object.entries(errorFacts).map(([code, { meaning, adminStatus, whatToDo }]) => [
        `\`${code}\``,
        meaning,
        String(adminStatus ?? ''),
        whatToDo,
      ]),
    ),
  },
];
