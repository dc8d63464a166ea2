// Applies to everything: forms of other sites are refused, and a browser gets a page where nothing is served.
import { defineFolder, fromOrigins } from '../../index.ts';

const page =
  '<!doctype html><title>Not found</title><p>There is nothing here. <a href="/">Home</a></p>\n';

export const folder = defineFolder({
  guard: fromOrigins([]),
  async around(next, { headers }) {
    const answer = await next();
    const isForBrowser = headers.get('accept')?.includes('text/html') === true;
    if (answer.status === 404 && isForBrowser) {
      answer.body = page;
      answer.headers.set('content-type', 'text/html;charset=UTF-8');
    }
    return answer;
  },
});
