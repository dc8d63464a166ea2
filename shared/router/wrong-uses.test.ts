// Wrong uses that the compiler refuses, each on the line below its mark. A mark above a valid line is an error of
// `npm run types` itself.
import test from 'ava';
import Type from 'typebox';
import { client } from './client/client.ts';
import { Controller } from './controller.ts';
import { ServerEvent } from './live/server-event.ts';
import { op } from './op.ts';
import { optional, part } from './path-part.ts';

const note = Type.Object({ text: Type.String(), stars: Type.Optional(Type.Integer()) });

class Default extends Controller {
  static readonly GET = op({
    path: [optional(part('id', Type.Integer()))],
    query: Type.Object({ limit: Type.With(Type.Integer(), { default: 20 }) }),
    failures: { 409: Type.Object({ since: Type.Integer() }) },
  });
  GET({ limit }: { limit: number }, id?: number) {
    return { limit, id, at: new Date(0) };
  }

  static readonly POST = op({ body: note });
  POST({ text }: { text: string }) {
    return text;
  }

  static readonly PUT = op({ path: [Type.Integer()], body: note });
  PUT(_fields: object, id: number) {
    return id;
  }
}

class Sums extends Controller {
  static readonly GET = op(
    { path: [Type.Integer()], query: Type.Object({ add: Type.Integer() }) },
    (fields, id) => ({ sum: id + fields.add }),
  );
}

class Ticks extends Controller {
  static readonly GET = op({ produces: 'text/event-stream' });
  async *GET() {
    yield new ServerEvent({ n: 1 }, { name: 'tick' });
  }
}

class Scans extends Controller {
  static readonly PUT = op({ path: [Type.Integer()], raw: true }, (_fields, bytes, id) => ({
    id,
    bytes: bytes.length,
  }));
  static readonly POST = op({ body: Type.String() }, (_fields, text) => text);
}

class Videos extends Controller {
  static readonly PUT = op({ stream: true }, async (_fields, body) => {
    // @ts-expect-error a streamed body has no length: it is still to come
    body.length;
    for await (const { filename } of body.parts()) if (filename === undefined) return 'field';
    return 'files';
  });
}

class Hidden extends Controller {
  static override readonly private: boolean = true;
  GET() {}
}

class Silent extends Hidden {}

class Shown extends Hidden {
  static override readonly private = false;
}

type Modules = {
  readonly '': {
    Ticks: typeof Ticks;
    Hidden: typeof Hidden;
    Silent: typeof Silent;
    Shown: typeof Shown;
    Sums: typeof Sums;
    Videos: typeof Videos;
    Scans: typeof Scans;
  };
} & {
  readonly notes: { Default: typeof Default };
};

/** Compiled, but never called. */
async function callWrongly(): Promise<void> {
  const api = client<Modules>('/');
  // @ts-expect-error no module has this path
  await api.noted.GET();
  // @ts-expect-error the class does not have this verb
  await api.notes.DELETE();
  // @ts-expect-error a private class is not served
  await api.Hidden.GET();
  // @ts-expect-error nor is its subclass that does not declare otherwise
  await api.Silent.GET();
  await api.Shown.GET();
  // @ts-expect-error Default is served at the path of its module
  await api.notes.Default.GET();
  // @ts-expect-error no such field
  await api.notes.GET({ limits: 5 });
  // @ts-expect-error a field of another type
  await api.notes.GET({ limit: '5' });
  // @ts-expect-error a position of another type
  await api.notes.GET({}, 'seven');
  // @ts-expect-error one position too many
  await api.notes.GET({}, 7, 8);
  // @ts-expect-error a required position is missing
  await api.notes.PUT({ text: 'a' });
  // @ts-expect-error the required fields are missing
  await api.notes.POST();
  // @ts-expect-error one required field is missing
  await api.notes.POST({ stars: 1 });
  const read = await api.notes.GET();
  // @ts-expect-error without a check of `ok` there is no value
  read.value;
  if (read.ok) {
    // @ts-expect-error a field that the method does not answer
    read.value.title;
    // @ts-expect-error a Date has become a text in JSON
    read.value.at.getTime();
  } else if (read.status === 409) {
    // @ts-expect-error what this status declares has no such field
    read.error.until;
  } else {
    // @ts-expect-error this body belongs to another status
    read.error.since;
  }
  const sum = await api.Sums.GET({ add: 1 }, 7);
  // @ts-expect-error a method that was given with its declaration answers what it returns
  if (sum.ok) sum.value.total;
  // @ts-expect-error a method that takes its body raw is given it first
  await api.Scans.PUT({}, 7);
  // @ts-expect-error a text as the whole body looks like a position
  await api.Scans.POST({}, 'text');
  // @ts-expect-error a method that takes its body while it arrives is given it, too
  await api.Videos.PUT({});
  const ticks = await api.Ticks.GET();
  // @ts-expect-error events come one after another, not as a list
  if (ticks.ok) ticks.value.length;
  // @ts-expect-error of an event its data arrives, not what it was made with
  if (ticks.ok) for await (const tick of ticks.value) tick.options;
}

test('each wrong use of a client is refused by the compiler', (t) => {
  t.is(callWrongly.toString().match(/@ts-expect-error/g)?.length, 23);
});
