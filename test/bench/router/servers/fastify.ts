// Fastify with its own validation (Ajv), as its documents write it.
import Fastify from 'fastify';
import Type from 'typebox';
import { catalogue } from '../rows.ts';
import { serve } from '../serve.ts';

const app = Fastify();

app.get<{ Params: { id: number }; Querystring: { limit: number } }>(
  '/users/:id',
  {
    schema: {
      params: Type.Object({ id: Type.Integer({ minimum: 1 }) }),
      querystring: Type.Object({ limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }) }),
    },
  },
  async ({ params: { id }, query: { limit } }) => ({ id, limit }),
);

app.post<{ Body: { customer: string; items: unknown[] } }>(
  '/orders',
  {
    schema: {
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
    },
  },
  async ({ body: { customer, items } }) => ({ customer, items: items.length }),
);

app.get('/catalogue', async () => catalogue);
app.get('/hello', async () => ({ hello: 'world' }));

await app.ready();
await serve(app.server);
