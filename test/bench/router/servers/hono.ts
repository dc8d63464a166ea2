// Hono with zod as its validator, on its server for Node.
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { zValidator } from '@hono/zod-validator';
import { Hono } from 'hono';
import { z } from 'zod';
import { catalogue, headersOfMembers } from '../rows.ts';
import { serve } from '../serve.ts';

const app = new Hono();

app.get(
  '/users/:id',
  zValidator('param', z.object({ id: z.coerce.number().int().min(1) })),
  zValidator('query', z.object({ limit: z.coerce.number().int().min(1).max(100).default(20) })),
  (context) => {
    const { id } = context.req.valid('param');
    const { limit } = context.req.valid('query');
    return context.json({ id, limit });
  },
);

const members = new Hono<{ Variables: { user: string } }>();
members.use(async (context, next) => {
  const [scheme, token = ''] = (context.req.header('authorization') ?? '').split(' ');
  if (scheme !== 'Bearer' || !token.startsWith('t-')) return context.body(null, 401);
  context.set('user', token.slice(2));
  await next();
  const headers = { ...headersOfMembers, 'x-request-id': randomUUID() };
  for (const [name, value] of Object.entries(headers)) context.header(name, value);
  return undefined;
});
members.get(
  '/:id',
  zValidator('param', z.object({ id: z.coerce.number().int().min(1) })),
  zValidator('query', z.object({ limit: z.coerce.number().int().min(1).max(100).default(20) })),
  (context) => {
    const { id } = context.req.valid('param');
    return context.json({ user: context.get('user'), id, limit: context.req.valid('query').limit });
  },
);
app.route('/members', members);

app.post(
  '/orders',
  zValidator(
    'json',
    z.object({
      customer: z.string().min(1).max(64),
      items: z
        .array(
          z.object({
            sku: z.string().max(64),
            count: z.number().int().min(1),
            price: z.number().min(0),
          }),
        )
        .max(100),
      note: z.string().max(200).optional(),
      express: z.boolean().default(false),
    }),
  ),
  (context) => {
    const { customer, items } = context.req.valid('json');
    return context.json({ customer, items: items.length });
  },
);

app.get('/catalogue', (context) => context.json(catalogue));
app.get('/hello', (context) => context.json({ hello: 'world' }));

await serve(createAdaptorServer({ fetch: app.fetch }) as Server);
