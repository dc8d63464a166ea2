// Generates the reference of the router's options from the comments of their types.
import { readFileSync } from 'node:fs';
import type { GeneratedSection } from './generated-section.ts';

const router = new URL('../../shared/router/', import.meta.url);

/** The members of an interface with their comments, in the order of the source. */
function readMembers(file: string, name: string): readonly (readonly [string, string])[] {
  const source = readFileSync(new URL(file, router), 'utf8');
  const [, body = ''] =
    new RegExp(`export (?:interface|const) ${name}(?: =)? \\{\\n([\\s\\S]*?)\\n\\}`).exec(source) ??
    [];
  const member = /\/\*\*([\s\S]*?)\*\/\s+(?:readonly )?(\w+)\??:/g;
  return [...body.matchAll(member)].map(([, comment = '', option = '']) => {
    const text = comment.replace(/\s*\n\s*\*?\s*/g, ' ').trim();
    // Only the first sentence; the type has the rest.
    const [first = ''] = text.split(/(?<=[.)])\s+(?=[A-Z@`])/);
    const [, byDefault] = /(?:@default|Default:) ([^.;]*)/.exec(text) ?? [];
    const isNamed = byDefault === undefined || first.includes('Default:');
    return [`\`${option}\``, isNamed ? first : `${first} Default: ${byDefault.trim()}.`] as const;
  });
}

const limits = readMembers('limits.ts', 'defaultLimits').map(
  ([name, text]) => `${name} ${/Default: (.*)\.$/.exec(text)?.[1] ?? ''}`,
);

export const routerSections: readonly GeneratedSection[] = [
  {
    document: new URL('docs/serving.md', router),
    mark: 'options',
    text: [
      ...readMembers('app.ts', 'AppOptions').map(([name, text]) => `- ${name}: ${text}`),
      `- \`limits\`: ${limits.join(', ')}.`,
    ].join('\n'),
  },
];
