// A collection with the usual verbs: list, read, create, replace, delete. It is lost when the process ends.
import Type from 'typebox';
import { Controller } from '../controller.ts';
import { HttpError } from '../errors.ts';
import { type Fields, op } from '../op.ts';
import { optional, part } from '../path-part.ts';

const maxWidgets = 1000;

const id = part('id', Type.String({ pattern: '^w-[0-9]{1,9}$' }));
const fields = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 64 }),
  size: Type.With(Type.Integer({ minimum: 1 }), { default: 1 }),
});
const widget = Type.Object({ id: Type.String(), ...fields.properties });

const widgets = new Map<string, Type.Static<typeof widget>>();
let created = 0;

export class Default extends Controller {
  static readonly GET = op({
    summary: 'List the widgets, or read one',
    path: [optional(id)],
    query: Type.Object({
      limit: Type.With(Type.Integer({ minimum: 1, maximum: 200 }), { default: 20 }),
    }),
    returns: { 200: Type.Union([widget, Type.Array(widget)]) },
  });

  static readonly POST = op({ summary: 'Create a widget', body: fields, returns: { 201: widget } });
  static readonly PUT = op({ path: [id], body: fields, returns: { 200: widget } });
  static readonly DELETE = op({ path: [id], returns: { 204: Type.Null() } });

  GET({ limit }: Fields<typeof Default.GET>, id?: string) {
    return id === undefined ? [...widgets.values()].slice(0, limit) : find(id);
  }

  POST({ name, size }: Fields<typeof Default.POST>) {
    if (widgets.size >= maxWidgets)
      throw new HttpError(409, { detail: 'there are enough widgets' });
    created += 1;
    const made = { id: `w-${created}`, name, size };
    widgets.set(made.id, made);
    this.response.status = 201;
    this.response.headers.set('location', `/widgets/${made.id}`);
    return made;
  }

  PUT({ name, size }: Fields<typeof Default.PUT>, id: string) {
    const changed = { ...find(id), name, size };
    widgets.set(id, changed);
    return changed;
  }

  DELETE(_fields: unknown, id: string) {
    widgets.delete(find(id).id);
  }
}

function find(id: string) {
  const found = widgets.get(id);
  if (found === undefined) throw new HttpError(404, { detail: `there is no widget ${id}` });
  return found;
}
