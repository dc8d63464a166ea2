// What the worker's documents take from its code, besides the settings.
import { errorFacts } from '../../shared/errors.ts';
import { type GeneratedSection, toTable } from '../../shared/generated-section.ts';
import { catalogue } from '../metrics/catalogue.ts';

export const workerSections: readonly GeneratedSection[] = [
  {
    document: new URL('../docs/statistics.md', import.meta.url),
    mark: 'statistics',
    text: toTable(
      ['Name', 'Kind', 'Meaning'],
      catalogue.map(({ name, kind, meaning }) => [`\`${name}\``, kind, meaning]),
    ),
  },
  {
    document: new URL('../README.md', import.meta.url),
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
