import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import Type from 'typebox';
import { z } from 'zod';
import { type AppOptions, createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { StartError } from '../errors.ts';
import { defineFolder } from '../folder.ts';
import { op } from '../op.ts';
import { named, optional } from '../path-part.ts';
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

async function whyNotStart(modules: Record<string, Record<string, unknown>>): Promise<string> {
  try {
    await createTestClient(modules);
  } catch (error) {
    if (error instanceof StartError) return error.message;
    throw error;
  }
  return 'it starts';
}

test('a module goes before a class of its path, with a warning at the start that names both', async (t) => {
  const modules = { '': { Quota }, quota: { Default } };
  const warnings: string[] = [];
  const client = await createTestClient(modules, { warn: (text) => warnings.push(text) });
  t.deepEqual(warnings, ['the module at /quota hides the class :Quota, which has the same path']);
  t.is((await client.send('GET', '/quota')).json, 'default');
  t.is((await client.send('POST', '/quota')).status, 405);
});

test('a POST that declares nothing gets the fields of the form, or of the object, as one object', async (t) => {
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

test('two classes, modules, or sub-paths of one path stop the start, all at once', async (t) => {
  class Default extends Controller {
    POST_foo_bar() {}
  }
  class FooBar extends Controller {
    static readonly Inner = class extends Controller {};
    GET_inner() {}
  }
  class FOOBar extends Controller {}
  const message = await whyNotStart({ a_b: { Default, FooBar, FOOBar }, aB: {} });
  t.deepEqual(message.split('\n'), [
    'the modules aB and a_b have one path',
    'a_b:FooBar.GET_inner and a_b:FooBar.Inner have one path',
    'the classes a_b:FooBar and a_b:FOOBar have one path',
    'a_b:Default (foo_bar) and a_b:FOOBar have one path: /a-b/foo-bar',
  ]);
});

test('a declaration that cannot be understood stops the start, with what is wrong', async (t) => {
  const start = (spec: Parameters<typeof op>[0]) => {
    class Odd extends Controller {
      static readonly GET = op(spec);
      GET() {}
    }
    return whyNotStart({ '': { Odd } });
  };
  const field = (schema: Type.TSchema) => start({ query: Type.Object({ a: schema }) });
  t.regex(
    await field(Type.String({ pattern: '(a+)+$' })),
    /:Odd.GET: the pattern .* exponential time/,
  );
  t.regex(await field(Type.String({ format: 'mail' })), /unknown format "mail"; known are date/);
  t.regex(await start({ query: Type.Object({}, { minProperties: 1 }) }), /remove minProperties/);
  t.regex(await start({ query: z.string() }), /query must be one object of named fields/);
  const a = Type.Object({ a: Type.String() });
  t.regex(await start({ query: a, body: a }), /keyword a .* declared twice/);
  t.regex(await start({ path: [named('a')], body: a }), /keyword a .* declared twice/);
  t.regex(await start({ query: a, aliases: { b: ['c'] } }), /b, which is no keyword/);
  t.regex(await start({ query: a, aliases: { a: ['a'] } }), /the alias a is the name/);
});

test('a static of a handler name that is not made by op() stops the start', async (t) => {
  class Odd extends Controller {
    static readonly GET = { path: [] };
    GET() {}
  }
  t.is(await whyNotStart({ '': { Odd } }), ':Odd.GET: the static GET is not made by op()');
});

test('a declaration without its method stops the start', async (t) => {
  class Odd extends Controller {
    static readonly PSOT = op({});
    POST() {}
  }
  t.is(await whyNotStart({ '': { Odd } }), ':Odd.PSOT is declared by op() and does not exist');
});

test('a required positional parameter may not follow an optional one', (t) => {
  t.throws(() => op({ path: [optional(Type.String()), Type.String()] }), { message: /follows/ });
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
    {
      controllerPrefix: ['a', 'b'],
      loadModules: (prefix) => new Map([['', trees[prefix] ?? {}]]),
    },
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

test('a message of a WebSocket cannot be declared streamed', async (t) => {
  for (const [spec, reason] of [[{ stream: true }, 'a message is never streamed']] as const) {
    class Room extends Controller {
      static readonly MESSAGE = op(spec);
      CONNECT() {}
      MESSAGE() {}
    }
    t.is(await whyNotStart({ '': { Room } }), `:Room.CONNECT: ${reason}`);
  }
});

test('what is private takes its subclasses and nested classes along, unless one declares otherwise', async (t) => {
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

test('a verb with a wrong letter, and a static that is nearly one, keep the application from starting', async (t) => {
  class Notes extends Controller {
    static readonly guards = [];
    static readonly publik = true;
    GTE() {}
    POTS() {}
    DELET_all() {}
    URL() {}
  }
  const error = await t.throwsAsync(createTestClient({ '': { Notes } }));
  t.deepEqual(error.message.split('\n'), [
    ':Notes.GTE is no handler; did you mean GET?',
    ':Notes.POTS is no handler; did you mean POST?',
    ':Notes.DELET_all is no handler; did you mean DELETE?',
    ':Notes: the static guards means nothing; did you mean guard?',
    ':Notes: the static publik means nothing; did you mean guard = open()?',
  ]);
});

test('a static that means something elsewhere, or is not true or false, keeps the application from starting', async (t) => {
  class Notes extends Controller {
    static readonly around = () => {};
    static readonly etag = true;
    static override readonly private = 'true' as never;
    static override readonly xml = 'yes' as never;
    static readonly seen = 0;
    GET() {}
  }
  const error = await t.throwsAsync(createTestClient({ '': { Notes } }), {
    instanceOf: StartError,
  });
  t.deepEqual(error.message.split('\n').sort(), [
    ':Notes: the static around means nothing; it stands in _folder',
    ':Notes: the static etag means nothing; it stands in op({ etag })',
    ':Notes: the static private is true or false',
    ':Notes: the static xml is true or false',
  ]);
});

test('an option of createApp that means nothing keeps it from starting', async (t) => {
  for (const [options, message] of [
    [{ guards: [] }, 'createApp: guards means nothing; did you mean guard?'],
    [{ onError() {} }, 'createApp: onError means nothing'],
  ] as const) {
    await t.throwsAsync(createTestClient({}, options as object), {
      instanceOf: StartError,
      message,
    });
  }
});

test('where nothing is served, what was found instead is named', async (t) => {
  const warningsOf = async (modules: Record<string, object>) => {
    const warnings: string[] = [];
    await createTestClient(modules as never, { warn: (text) => warnings.push(text) });
    return warnings;
  };
  class Empty extends Controller {}
  const why = 'nothing is served, no export is a controller with a method such as GET:';
  t.deepEqual(await warningsOf({ '': { Empty, help() {} }, notes: {} }), [
    `${why} the root module exports Empty, help; notes exports nothing`,
  ]);
  t.deepEqual(await warningsOf({}), []);
});

test('an export with verbs that is not a controller is named at the start, a helper is not', async (t) => {
  const warnings: string[] = [];
  class Plain {
    GET() {}
  }
  class Outer {
    static Inner = class extends Controller {};
    POST_reset() {}
  }
  class Helper {
    get() {}
  }
  const loaded = { GET() {} };
  const _hidden = Plain;
  class BaseController extends Controller {
    GET() {}
  }
  const modules = {
    Plain,
    Outer,
    Helper,
    loaded,
    _hidden,
    BaseController,
    number: 7,
    nothing: null,
  };
  await createTestClient({ notes: modules }, { warn: (text) => warnings.push(text) });
  const why =
    'and is not a controller, so that no path reaches it: it does not extend Controller of this package';
  t.deepEqual(warnings.slice(0, 3), [
    `notes:Plain has GET ${why}`,
    `notes:Outer has POST_reset ${why}`,
    `notes:loaded has GET ${why}`,
  ]);
});

test('limits and wrong origins on a class keep the application from starting, as do its own', async (t) => {
  class Notes extends Controller {
    static override readonly cors = { origin: ['https://a.example'] } as never;
    static readonly limits = { bodyBytes: 5 };
    GET() {}
  }
  const error = await t.throwsAsync(createTestClient({ '': { Notes } }));
  t.deepEqual(error.message.split('\n'), [
    ":Notes: cors is true, or a list: { origins: ['https://shop.example'] }",
    ':Notes: the static limits means nothing; it stands in op({ limits }) or in _folder',
  ]);
  const cors = { origins: 'https://a.example' } as never;
  const folder = { folder: defineFolder({ cors }) };
  t.regex(await whyNotStart({ _folder: folder, '': { Quota } }), /^_folder: cors is true/);
  const start = (options: AppOptions) => createTestClient({ '': { Quota } }, options);
  await t.throwsAsync(start({ cors }), { instanceOf: StartError, message: /application: cors is/ });
  await t.throwsAsync(start({ limits: { bodyByte: 5 } as object }), {
    instanceOf: StartError,
    message: 'limits of the application: bodyByte means nothing; did you mean bodyBytes?',
  });
});

test('a module that is nearly _folder is reported, since its guard would be missing', async (t) => {
  const folder = { folder: defineFolder({}) };
  t.is(
    await whyNotStart({ 'notes._folders': folder, notes: { Default } }),
    'notes._folders is not read; did you mean _folder?',
  );
  t.is(await whyNotStart({ 'notes._forms': folder, notes: { Default } }), 'it starts');
});

test('a verb in small letters is reported, and is no handler', async (t) => {
  const warnings: string[] = [];
  class Notes extends Controller {
    get() {}
    getAll() {}
  }
  const warn = (text: string) => warnings.push(text);
  const client = await createTestClient({ '': { Notes } }, { warn });
  t.deepEqual(warnings.slice(0, 1), [':Notes.get is no handler; did you mean GET?']);
  t.is((await client.send('GET', '/notes')).status, 404);
});

test('a PATCH whose fields have defaults is reported, since it would reset what a request leaves out', async (t) => {
  const fields = Type.Object({ size: Type.Integer({ default: 1 }), name: Type.String() });
  class Default extends Controller {
    static readonly PATCH = op({ body: Type.Partial(fields) });
    PATCH() {}
  }
  const warnings: string[] = [];
  await createTestClient({ '': { Default } }, { warn: (text) => warnings.push(text) });
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /^:Default\.PATCH has defaults, .*: size;/);
});

test('a mistake in a module of a folder is reported with its file and line', async (t) => {
  const place = await createControllers(t, {
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
  t.deepEqual(await whyNotStartFrom(place('')), [
    `${place('below/index.ts')}:10: below:Items.Inner.POST: query must be a plain object schema; remove minProperties`,
    `${place('below/index.ts')}:8: below:Items.GTE is no handler; did you mean GET?`,
    `${place('below/index.ts')}:4: below:Notes.GET is declared by op() and does not exist`,
  ]);
});

test('two classes, or modules, of one path are reported with their files', async (t) => {
  const place = await createControllers(t, {
    'aB.ts': '',
    'a_b.ts': `
export class FooBar extends Controller {}
export class FOOBar extends Controller {}
export class Default extends Controller {
  GET_foo_bar() {}
}
`,
  });
  const file = place('a_b.ts');
  t.deepEqual(await whyNotStartFrom(place('')), [
    `${file}: ${place('aB.ts')}: the modules aB and a_b have one path`,
    `${file}:4: the classes a_b:FOOBar and a_b:FooBar have one path`,
    `${file}:5: a_b:Default (foo_bar) and a_b:FooBar have one path: /a-b/foo-bar`,
  ]);
});

test('a forgotten guard is reported with file and line, of the prefix that has the class', async (t) => {
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
  const told = `${second('index.ts')}:3: :Open has no guard for GET; give it one, or open() where every caller may call`;
  const prefixes = [first(''), second('')];
  t.deepEqual(await whyNotStartFrom(prefixes, { requireGuards: true }), [told]);
  const warnings: string[] = [];
  await createApp({ controllerPrefix: prefixes, warn: (text) => warnings.push(text) });
  t.deepEqual(warnings, [told]);
});

test('a _folder with an invalid guard is reported once, with its file', async (t) => {
  const notes = `
export class Default extends Controller {
  GET() {}
  POST() {}
}
`;
  const place = await createControllers(t, {
    'notes/_folder.ts': 'export const folder = defineFolder({ guard: (() => true) as never });',
    'notes/index.ts': notes,
  });
  t.deepEqual(await whyNotStartFrom(place('')), [
    `${place('notes/_folder.ts')}: notes._folder: its guard is not made by bearer(), basic() or the like`,
  ]);
});

/** Controllers in a folder of their own, each file behind a line that imports what they need; where a file is, from the
 * working directory. */
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
