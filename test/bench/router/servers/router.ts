// The router, with the methods that rows.ts asks for.
import Type from 'typebox';
import { createApp } from '../../../../shared/router/app.ts';
import { Controller } from '../../../../shared/router/controller.ts';
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

const modules = new Map([['', { Users, Orders, Catalogue, Hello }]]);
await serve(createNodeServer(await createApp({ loadModules: () => modules })));
