// `/console/`: the pages for browsers. They are the same for all users and contain no data, so they need no token;
// their data comes from the admin API, with the user's token.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorText } from '../../../shared/errors.ts';
import { type Asset, type ConsoleAssets, readConsoleAssets } from './assets.ts';

const headers = {
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  vary: 'accept-encoding',
  'x-content-type-options': 'nosniff',
};

/** Reads the files at the first request. */
export function addConsoleRoutes(instance: FastifyInstance, onError: (text: string) => void): void {
  let reading: Promise<ConsoleAssets> | undefined;
  // Relative, so that the redirect works behind a proxy that adds a prefix.
  instance.get('/', (_request, reply) => reply.redirect('console/'));
  instance.get('/console', (_request, reply) => reply.redirect('console/'));
  instance.get<{ Params: { '*': string } }>('/console/*', async (request, reply) => {
    reading ??= readConsoleAssets();
    let assets: ConsoleAssets;
    try {
      assets = await reading;
    } catch (error) {
      reading = undefined;
      onError(`the console cannot be read: ${errorText(error)}`);
      return reply
        .code(500)
        .type('text/plain')
        .send('the console cannot be read; the log has the reason\n');
    }
    const asset = assets.files.get(request.params['*']);
    if (asset === undefined) {
      return reply.code(404).type('text/plain').send('the console has no such file\n');
    }
    reply.headers({ ...headers, 'content-security-policy': assets.policy });
    return sendAsset(asset, request, reply);
  });
}

function sendAsset(asset: Asset, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header('etag', asset.tag);
  if (request.headers['if-none-match']?.includes(asset.tag)) return reply.code(304).send();
  const accepted = request.headers['accept-encoding'] ?? '';
  const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : 'identity';
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  return reply.type(asset.mediaType).send(asset.bodies[encoding]);
}
