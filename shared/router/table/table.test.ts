import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import Type from 'typebox';
import { type AppOptions, createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { StartError } from '../errors.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';

class Default extends Controller {
  static readonly GET = op({ rest: Type.String() });
  GET() {
    return 'default';
  }
}

class Quota extends Controller {
  GET() {
    return 'class';
  }
  POST() {
    return 'class';
  }
}

test('a module goes before a class of its path', async (t) => {
  const client = await createTestClient({ '': { Quota }, quota: { Default } });
  t.is((await client.send('GET', '/quota')).json, 'default');
  await t.is((await client.send('POST', '/quota')).status, 405);
});

test('a POST without a declaration receives the fields of a form or of JSON as one object', async (t) => {
  class Plain extends Controller {
    POST(fields: Record<string, unknown>) {
      return fields;
    }
  }
  const client = await createTestClient({ '': { Plain } }, { requireGuards: false });
  const post = async (type: string, body: string) => {
    const answer = await client.send('POST', '/plain?c=q', {
      headers: { 'content-type': type },
      body,
    });
    return answer.json;
  };
  t.deepEqual(await post('application/x-www-form-urlencoded', 'a=1&b=x'), {
    a: '1',
    b: 'x',
    c: 'q',
  });
  t.deepEqual(await post('application/json', '{"a":1,"b":{"c":[true]}}'), {
    a: 1,
    b: { c: [true] },
    c: 'q',
  });
});

test('a later prefix replaces classes of an earlier one, and adds to it', async (t) => {
  class Other extends Controller {
    GET() {
      return 'other';
    }
  }
  const trees: Record<string, Record<string, unknown>> = {
    a: { Default, Quota },
    b: { Quota: Other, Other },
  };
  const client = await createTestClient(
    {},
    { controllerPrefix: ['a', 'b'], loadModules: (prefix) => new Map([['', trees[prefix] ?? {}]]) },
  );
  t.is((await client.send('GET', '/quota')).json, 'other');
  t.is((await client.send('POST', '/quota')).status, 405);
  t.is((await client.send('GET', '/other')).json, 'other');
  t.is((await client.send('GET', '/x')).json, 'default');
});

test('of a module and a class of one path the later prefix has its own', async (t) => {
  class Limits extends Controller {
    GET() {
      return 'other';
    }
  }
  class Actions extends Controller {
    GET_quota() {
      return 'action';
    }
  }
  const trees: Record<string, Record<string, Record<string, unknown>>> = {
    module: { quota: { Default }, 'quota.limits': { Default } },
    class: { '': { Quota } },
    inner: { quota: { Limits } },
    action: { '': { default: class Default extends Actions {} } },
  };
  const answers = async (controllerPrefix: string[], target: string) => {
    const loadModules = (prefix: string) => new Map(Object.entries(trees[prefix] ?? {}));
    const client = await createTestClient({}, { controllerPrefix, loadModules });
    const { status, json } = await client.send('GET', target);
    return status === 200 ? json : status;
  };
  t.is(await answers(['module', 'class'], '/quota'), 'class');
  t.is(await answers(['module', 'class'], '/quota/limits'), 404);
  t.is(await answers(['class', 'module'], '/quota'), 'default');
  t.is(await answers(['module', 'inner'], '/quota/limits'), 'other');
  t.is(await answers(['module', 'action'], '/quota'), 'action');
  t.is(await answers(['class', 'action'], '/quota'), 'action');
  t.is(await answers(['action', 'class'], '/quota'), 'class');
});

test('the search for controllers runs no getter of a class, and ends at classes that name each other', async (t) => {
  class Left extends Controller {
    static Right: unknown;
    static get Inner(): unknown {
      return t.fail('the getter ran');
    }
    GET() {
      return 1;
    }
  }
  class Right extends Controller {
    static Left = Left;
    GET() {
      return 2;
    }
  }
  Left.Right = Right;
  const client = await createTestClient({ '': { Left, Right } });
  t.is((await client.send('GET', '/left/right')).json, 2);
  t.is((await client.send('GET', '/left/right/left')).status, 404);
});

test('subclasses and nested classes of a private class are private, unless one declares otherwise', async (t) => {
  class Hidden extends Controller {
    static override readonly private: boolean = true;
    static readonly Inner = class extends Controller {
      GET() {}
    };
    GET() {
      return 'inherited';
    }
  }
  class Silent extends Hidden {}
  class Shown extends Hidden {
    static override readonly private = false;
  }
  class Below extends Shown {}
  const client = await createTestClient({
    '': { Hidden, Silent, Shown, Below },
    _m: { Quota },
    'a._b': { Quota },
  });
  t.is((await client.send('GET', '/hidden')).status, 404);
  t.is((await client.send('GET', '/hidden/inner')).status, 404);
  t.is((await client.send('GET', '/silent')).status, 404);
  t.is((await client.send('GET', '/silent/inner')).status, 404);
  t.is((await client.send('GET', '/shown')).json, 'inherited');
  t.is((await client.send('GET', '/below')).json, 'inherited');
  t.is((await client.send('GET', '/m/quota')).status, 404);
  t.is((await client.send('GET', '/a/b/quota')).status, 404);
});

test('a default export goes by the name of its class', async (t) => {
  const client = await createTestClient({ '': { default: Quota }, m: { default: Default } });
  t.is((await client.send('GET', '/quota')).json, 'class');
  t.is((await client.send('GET', '/m')).json, 'default');
});

test('a mistake in a module of a folder is reported with its file', async (t) => {
  const position = await createControllers(t, {
    'below/index.ts': `
export class Notes extends Controller {
  static readonly GET = op({});
}

export class Items extends Controller {
  GTE() {}
  static Inner = class extends Controller {
    static readonly POST = op({ query: Type.Object({}, { minProperties: 1 }) });
    POST() {}
  };
}
`,
  });
  t.deepEqual(await whyNotStartFrom(position('')), [
    `${position('below/index.ts')}: below:Items.Inner.POST: query must be one object of its fields alone, as Type.Object({ ... })`,
    `${position('below/index.ts')}: below:Items.GTE is no handler; did you mean GET?`,
    `${position('below/index.ts')}: below:Notes.GET is declared by op() and does not exist`,
  ]);
});

test('two classes, or modules, of one path are reported with their files', async (t) => {
  const position = await createControllers(t, {
    'aB.ts': '',
    'a_b.ts': `
export class FooBar extends Controller {}
export class FOOBar extends Controller {}
export class Default extends Controller {
  GET_foo_bar() {}
}
`,
  });
  const file = position('a_b.ts');
  t.deepEqual(await whyNotStartFrom(position('')), [
    `${file}: ${position('aB.ts')}: the modules aB and a_b have one path`,
    `${file}: the classes a_b:FOOBar and a_b:FooBar have one path`,
    `${file}: a_b:Default (foo_bar) and a_b:FooBar have one path: /a-b/foo-bar`,
  ]);
});

test('a forgotten guard is reported with its file, of the prefix that has the class', async (t) => {
  const open = `
export class Open extends Controller {
  GET() {}
}
`;
  const guarded = `
export class Guarded extends Controller {
  static readonly guard = bearer(() => true);
  GET() {}
}
`;
  const first = await createControllers(t, { 'index.ts': guarded });
  const second = await createControllers(t, { 'index.ts': open });
  const warning = `${second('index.ts')}: :Open has no guard for GET; give it one, or open() where every caller may call`;
  const prefixes = [first(''), second('')];
  t.deepEqual(await whyNotStartFrom(prefixes, { requireGuards: true }), [warning]);
  const warnings: string[] = [];
  await createApp({ controllerPrefix: prefixes, warn: (text) => warnings.push(text) });
  t.deepEqual(warnings, [warning]);
});

test('a _folder with an invalid guard is reported once, with its file', async (t) => {
  const notes = `
export class Default extends Controller {
  GET() {}
  POST() {}
}
`;
  const position = await createControllers(t, {
    'notes/_folder.ts': 'export const folder = defineFolder({ guard: (() => true) as never });',
    'notes/index.ts': notes,
  });
  t.deepEqual(await whyNotStartFrom(position('')), [
    `${position('notes/_folder.ts')}: notes._folder: its guard is not made by bearer(), basic() or the like`,
  ]);
});

/** Controllers in a temporary folder; each file begins with a line that imports what they need. File paths are relative
 * to the working directory. */
async function createControllers(
  t: ExecutionContext,
  files: Readonly<Record<string, string>>,
): Promise<(file: string) => string> {
  const folder = await mkdtemp(join(tmpdir(), 'router-place-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const entry = JSON.stringify(join(import.meta.dirname, '..', 'index.ts'));
  const head = `import { bearer, Controller, defineFolder, op, Type } from ${entry};`;
  for (const [name, source] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), `${head}\n${source}`);
  }
  return (file) => relative('', join(folder, file));
}

async function whyNotStartFrom(
  controllerPrefix: string | readonly string[],
  options: AppOptions = {},
): Promise<readonly string[]> {
  try {
    await createApp({ ...options, controllerPrefix });
    return [];
  } catch (error) {
    if (error instanceof StartError) return error.problems;
    throw error;
  }
}
