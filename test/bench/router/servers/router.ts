// The router, with the methods that rows.ts calls.
import Type from 'typebox';
import { createApp } from '../../../../shared/router/app.ts';
import { Controller } from '../../../../shared/router/controller.ts';
import { defineFolder, type StateOf } from '../../../../shared/router/folder.ts';
import { bearer } from '../../../../shared/router/guard.ts';
import { createNodeServer } from '../../../../shared/router/mounts/node-http.ts';
import { type Args, type Fields, op } from '../../../../shared/router/op.ts';
import { part } from '../../../../shared/router/path-part.ts';
import { catalogue } from '../rows.ts';
import { serve } from '../serve.ts';

class Users extends Controller {
  static readonly GET = op({
    path: [part('id', Type.Integer({ minimum: 1 }))],
    query: Type.Object({ limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }) }),
  });
  GET(...[{ limit }, id]: Args<typeof Users.GET>) {
    return { id, limit };
  }
}

class Orders extends Controller {
  static readonly POST = op({
    body: Type.Object({
      customer: Type.String({ minLength: 1, maxLength: 64 }),
      items: Type.Array(
        Type.Object({
          sku: Type.String({ maxLength: 64 }),
          count: Type.Integer({ minimum: 1 }),
          price: Type.Number({ minimum: 0 }),
        }),
        { maxItems: 100 },
      ),
      note: Type.Optional(Type.String({ maxLength: 200 })),
      express: Type.Boolean({ default: false }),
    }),
  });
  POST({ customer, items }: Fields<typeof Orders.POST>) {
    return { customer, items: items.length };
  }
}

class Catalogue extends Controller {
  GET() {
    return catalogue;
  }
}

class Hello extends Controller {
  GET() {
    return { hello: 'world' };
  }
}

/** The guard identifies the user; an around sets a header on every answer below. */
const folder = defineFolder({
  guard: bearer((token, { state }) => {
    state['user'] = token.slice(2);
    return token.startsWith('t-');
  }),
  before: ({ state }) => ({ user: String(state['user']) }),
  async around(next) {
    const answer = await next();
    answer.headers.set('x-served-by', 'members');
    return answer;
  },
});

class Members extends Controller<StateOf<typeof folder>> {
  static readonly GET = Users.GET;
  GET(...[{ limit }, id]: Args<typeof Users.GET>) {
    return { user: this.state.user, id, limit };
  }
}

const modules = new Map<string, Record<string, unknown>>([
  ['', { Users, Orders, Catalogue, Hello }],
  ['members._folder', { folder }],
  ['members', { Default: Members }],
]);
await serve(createNodeServer(await createApp({ loadModules: () => modules, warn: () => {} })));
