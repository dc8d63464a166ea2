// The controllers of the application that tests the router's package; they are copied there.
import { Controller, type Fields, HttpError, op, Type } from '../../shared/router/index.ts';

export class Notes extends Controller {
  static readonly POST = op({
    body: Type.Object({ text: Type.String({ minLength: 1, pattern: '^[a-z ]+$' }) }),
    failures: { 409: Type.Object({ taken: Type.String() }) },
  });
  POST({ text }: Fields<typeof Notes.POST>) {
    if (text === 'taken') throw new HttpError(409, { body: { taken: text } });
    this.response.status = 201;
    return { text };
  }
}

export class Sums extends Controller {
  static readonly GET = op(
    { path: [Type.Integer()], query: Type.Object({ add: Type.Integer() }) },
    ({ add }, number) => ({ sum: number + add }),
  );
}

export class Ticks extends Controller {
  static readonly GET = op({ produces: 'text/event-stream' });
  async *GET() {
    for (let n = 1; n <= 3; n += 1) yield { n };
  }
}

export class Echo extends Controller {
  static readonly MESSAGE = op({ body: Type.Object({ text: Type.String() }) });
  CONNECT() {}
  MESSAGE({ text }: Fields<typeof Echo.MESSAGE>) {
    return { text };
  }
}
