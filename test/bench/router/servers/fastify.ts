// Fastify with its own validation (Ajv), as in its documentation.
import { randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import Type from 'typebox';
import { catalogue, headersOfMembers } from '../rows.ts';
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

/** A plugin with hooks for everything below it, and a schema for the answer. */
await app.register(
  // biome-ignore lint/nursery/noMisusedPromises: a plugin may be one.
  async (members) => {
    members.decorateRequest('user', '');
    members.addHook('onRequest', async (request, reply) => {
      const [scheme, token = ''] = (request.headers.authorization ?? '').split(' ');
      if (scheme !== 'Bearer' || !token.startsWith('t-')) return reply.code(401).send();
      request.setDecorator('user', token.slice(2));
    });
    members.addHook('onSend', async (_request, reply) => {
      reply.headers({ ...headersOfMembers, 'x-request-id': randomUUID() });
    });
    members.get<{ Params: { id: number }; Querystring: { limit: number } }>(
      '/:id',
      {
        schema: {
          params: Type.Object({ id: Type.Integer({ minimum: 1 }) }),
          querystring: Type.Object({
            limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
          }),
          response: {
            200: Type.Object({ user: Type.String(), id: Type.Integer(), limit: Type.Integer() }),
          },
        },
      },
      async (request) => {
        const { params, query } = request;
        return { user: request.getDecorator<string>('user'), id: params.id, limit: query.limit };
      },
    );
  },
  { prefix: '/members' },
);

app.get('/catalogue', async () => catalogue);
app.get('/hello', async () => ({ hello: 'world' }));

await app.ready();
await serve(app.server);
