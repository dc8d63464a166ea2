// The root module of the sample: `GET /` and `GET /status`.
import { Controller } from '../controller.ts';

export class Default extends Controller {
  GET() {
    return { hello: 'world' };
  }
}

export class Status extends Controller {
  GET() {
    return { uptimeSeconds: Math.round(process.uptime()) };
  }
}
