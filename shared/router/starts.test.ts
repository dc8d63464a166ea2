// What keeps an application from starting, and the warnings of a start. In the lines of starts.txt, `@` and its path
// introduce a module, as JavaScript that exports its classes and constants; `@options` introduces those of the
// application. Requests can follow, each after `>`, with JSON as body.
import test from 'ava';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { StartError } from './errors.ts';
import { createTestClient } from './test-client.ts';

const names =
  'basic, bearer, Controller, defineFolder, files, fromOrigins, limited, named, op, open, optional, part, Type, upload';
const head = `import { ${names} } from '${new URL('index.ts', import.meta.url)}';
import { z } from '${import.meta.resolve('zod')}';
import { toStandardJsonSchema } from '${import.meta.resolve('@valibot/to-json-schema')}';
import * as v from '${import.meta.resolve('valibot')}';
`;

async function load(source: string): Promise<Record<string, unknown>> {
  const exported = source.replaceAll(/(?<=^|[;}] )(?=(?:class|const) )/g, 'export ');
  return import(`data:text/javascript,${encodeURIComponent(head + exported)}`);
}

testLines(test, new URL('starts.txt', import.meta.url), async (given) => {
  const lines: string[] = [];
  const [source = '', ...requests] = given.split(/ > (?=[A-Z]+ \/)/);
  try {
    const modules: Record<string, Record<string, unknown>> = {};
    for (const text of source.split(/(?:^| )@(?=\S* )/).slice(1)) {
      const at = text.indexOf(' ');
      modules[text.slice(0, at)] = await load(text.slice(at + 1));
    }
    const { options, ...controllers } = modules;
    const warn = (text: string) => lines.push(`warning: ${text}`);
    const { send } = await createTestClient(controllers, { warn, ...Object(options?.['options']) });
    for (const request of requests) {
      const [method = '', target = '', body] = request.split(/ (.*?)(?: |$)/, 3);
      const answer = await send(method, target, body ? { body: JSON.parse(body) } : {});
      const { errors }: { readonly errors?: unknown } = Object(answer.json);
      lines.push(
        `${answer.status} ${errors ? JSON.stringify(errors) : answer.text.split('\n', 1)}`,
      );
    }
  } catch (error) {
    const { name, message } = error as Error;
    lines.push(...(error instanceof StartError ? message.split('\n') : [`${name}: ${message}`]));
  }
  return lines.length === 0 ? 'it starts' : lines.join('; ');
});
