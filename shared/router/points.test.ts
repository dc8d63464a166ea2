// Each point of the router is shown by tests that exist.
import { readFile } from 'node:fs/promises';
import test from 'ava';

/** By point: the titles of tests that show it, each behind its file. */
const points: Readonly<Record<string, readonly (readonly [file: string, title: string])[]>> = {
  'Protection adds up and cannot be lost': [
    [
      'guard.test.ts',
      'guards of enclosing classes, base classes and base methods are all asked, each once',
    ],
    [
      'guard.test.ts',
      'a class without a guard beside one with a guard is named at the start; without any guard nothing is',
    ],
    ['guard.test.ts', 'an application with an unguarded method does not start, and is named'],
    [
      'guard.test.ts',
      'a check that fails is 503 without a challenge; its error is for the log alone',
    ],
  ],
  '`_folder.ts` speaks for everything below it': [
    [
      'folder.test.ts',
      'a folder guards everything below it, and passes its controllers the caller',
    ],
    [
      'folder.test.ts',
      'folders run from the outside in before a method, and from the inside out after it',
    ],
    [
      'around/around.test.ts',
      'every request below a folder is surrounded, also one that no method answers',
    ],
    [
      'around/compress.test.ts',
      'texts and streams are compressed for who accepts it, by what is preferred',
    ],
  ],
  'A method and its declaration are one': [
    ['op.test.ts', 'a method that contradicts its declaration does not compile'],
    [
      'table/table.test.ts',
      'a verb with a wrong letter, and a static that is nearly one, keep the application from starting',
    ],
  ],
  'A typed client without generation': [
    ['wrong-uses.test.ts', 'each wrong use of a client is refused by the compiler'],
  ],
  'Standard Schema': [
    [
      'standard-schema.test.ts',
      'schemas of TypeBox, zod and valibot convert, check and describe alike',
    ],
  ],
  'A package of its own': [
    [
      '../../test/e2e/router-package.test.ts',
      'it is small, has two entries, and six dependencies at most',
    ],
    [
      '../../test/e2e/router-package.test.ts',
      'its internals cannot be imported, and importing it starts nothing',
    ],
  ],
  'Speed beside Fastify and Hono': [
    [
      '../../test/bench/router/main.test.ts',
      'every server of the comparison answers every row as it must',
    ],
  ],
  'What a handler is notified of': [
    ['folder.test.ts', 'a method that takes too long is aborted, and its caller is answered 503'],
    ['request/body-stream.test.ts', 'a method is notified when its client goes away in the middle'],
    ['request/body-stream.test.ts', 'fields and files of a form come one by one, in their order'],
    ['dispatch.test.ts', 'Redirect keeps the headers that the method has set, each cookie of them'],
  ],
  'Live things by the same convention': [
    ['live/live.test.ts', 'a generator makes no event before there is room for it'],
    ['live/live.test.ts', 'a WebSocket without a guard does not start where guards are required'],
  ],
  'HTTP that a browser expects': [
    [
      'around/conditions.test.ts',
      'a caller that has an answer already gets 304 without it, until it changes',
    ],
    ['files.test.ts', 'a range is answered with these bytes alone, one that is not there with 416'],
    [
      'files.test.ts',
      'guards hold for files, other methods are 405 with Allow, and TRACE is refused',
    ],
  ],
  'A resource below an id': [
    [
      'table/below-an-id.test.ts',
      'a folder [id] puts a resource below an id, and takes its part as the first position',
    ],
    [
      'table/below-an-id.test.ts',
      'where the next part names nothing below the id, all is as without the folder',
    ],
  ],
  Anywhere: [
    [
      'mounts/fetch.test.ts',
      'a Worker is served by the fetch export: no eval, no folder of controllers, no server, nothing written',
    ],
    [
      'mounts/lambda.test.ts',
      'an event reaches its method with path, query, cookies and the address of the caller',
    ],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as the title stands in the source.
    ['../../test/e2e/router-package.test.ts', '${runtime.name} runs an application on it'],
  ],
  'While developing': [
    [
      'command/main.test.ts',
      'serve --watch restarts when a controller changes, and shows where an error was thrown',
    ],
    [
      'table/table.test.ts',
      'a PATCH whose fields have defaults is reported, since it would reset what a request leaves out',
    ],
  ],
  'Documents whose examples run': [
    [
      'readme.test.ts',
      'the TypeScript of the README and its guides compiles with the imports that it shows',
    ],
    ['first-application.test.ts', 'the tests of the guide pass'],
    ['coming-from.test.ts', 'the TypeScript of the guide compiles'],
  ],
};

for (const [point, tests] of Object.entries(points)) {
  test(`a test shows: ${point}`, async (t) => {
    for (const [path, title] of tests) {
      const source = await readFile(new URL(path, import.meta.url), 'utf8');
      const isThere = ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`));
      t.true(isThere, `${path} has no test "${title}"`);
    }
  });
}
