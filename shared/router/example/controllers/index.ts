// The page, and the description of what it calls.
import { Controller, files, open } from '../../index.ts';

export class Default extends Controller {
  static override readonly guard = open();
  static readonly GET = files(new URL('../page', import.meta.url));
}

export class Openapi_json extends Controller {
  static override readonly guard = open();
  GET() {
    return this.describe();
  }
}
