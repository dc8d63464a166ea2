// `POST /webhooks`: a Git host announces a push. A signature over the bytes of the body replaces the token, so this
// route is separate from the router.
import type {
  FastifyError,
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
} from 'fastify';
import { errorText } from '../../../shared/errors.ts';
import { HttpError, toErrorResponse, toHeaders } from '../../../shared/router/index.ts';
import { readSecretFile } from '../../../shared/small-file.ts';
import { trimEnd } from '../../../shared/trim-end.ts';
import type { ConfigStore } from '../store/store.ts';
import {
  verifyWebhook,
  type WebhookCall,
  type WebhookSettings,
  type WebhookVerdict,
} from '../store/webhook.ts';
import type { UnfinishedRequests } from '../unfinished-requests.ts';
import { watchBody } from './held-bodies.ts';

const signature = (name: string, description: string) => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
});
const refused = { $ref: '#/components/responses/Problem' };

/** The path item for the OpenAPI description. */
export const webhookPaths = {
  '/webhooks': {
    post: {
      operationId: 'postWebhooks',
      tags: ['webhooks'],
      summary: 'Poll for a new revision, announced by a Git host',
      description: 'The body comes from the Git host; its signature replaces a token.',
      parameters: [
        signature(
          'X-Hub-Signature-256',
          'sha256= and the HMAC of the body, as GitHub, Gitea and Forgejo send it',
        ),
        signature('X-Gitlab-Token', 'The secret, as GitLab sends it'),
      ],
      requestBody: { content: { 'application/json': { schema: {} } } },
      responses: {
        202: {
          description: 'Accepted',
          content: {
            'application/json': {
              schema: {
                type: 'object',
                properties: { accepted: { const: true } },
                required: ['accepted'],
              },
            },
          },
        },
        401: refused,
        413: refused,
        500: refused,
      },
      security: [],
    },
  },
};

export interface WebhookDeps {
  readonly settings: WebhookSettings;
  /** Polled for a new revision after each accepted call. */
  readonly store: Pick<ConfigStore, 'trigger'>;
  readonly onCall: (isAccepted: boolean, text: string) => void;
}

const maxSecretBytes = 4096;

/** Enough for a push with many commits. */
export const maxBytes = 5 * 1024 * 1024;

/** The answer does not wait for the store: senders give up after some seconds. */
export async function addWebhookRoute(
  instance: FastifyInstance,
  { settings, store, onCall }: WebhookDeps,
  unfinished: UnfinishedRequests,
): Promise<void> {
  const route: FastifyPluginAsync = async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addHook('preParsing', (request, _reply, payload, done) => {
      watchBody(request.raw, maxBytes, unfinished);
      done(null, payload);
    });
    scope.addContentTypeParser(
      '*',
      { parseAs: 'buffer', bodyLimit: maxBytes },
      (_request, body, done) => done(null, body),
    );
    // An unreadable body gets the same kind of answer as other errors.
    scope.setErrorHandler((error: FastifyError, request, reply) => {
      const status = error.statusCode ?? 500;
      if (status >= 500) throw error;
      return refuse(new HttpError(status, { detail: error.message }), request, reply);
    });
    scope.post('/webhooks', { bodyLimit: maxBytes }, async (request, reply) => {
      const body = request.body instanceof Uint8Array ? request.body : Buffer.alloc(0);
      const call: WebhookCall = { body, header: (name) => headerOf(request, name) };
      const verdict = await verify(call, settings);
      const outcome = verdict.ok ? 'polling the store' : `refused: ${verdict.reason}`;
      onCall(verdict.ok, `Webhook call from ${request.ip}: ${outcome}`);
      if (!verdict.ok)
        return refuse(new HttpError(401, { detail: verdict.reason }), request, reply);
      void store.trigger();
      reply.code(202).header('cache-control', 'no-store');
      return { accepted: true };
    });
  };
  await instance.register(route);
}

async function verify(
  call: WebhookCall,
  { secret, secretFile }: WebhookSettings,
): Promise<WebhookVerdict> {
  if (secretFile === undefined) return verifyWebhook(call, secret);
  try {
    return verifyWebhook(call, trimEnd(await readSecretFile(secretFile, maxSecretBytes), '\r\n'));
  } catch (error) {
    return { ok: false, reason: `the webhook secret cannot be read (${errorText(error)})` };
  }
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const values = request.raw.headersDistinct[name];
  return values?.length === 1 ? values[0] : undefined;
}

function refuse(error: HttpError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers, body } = toErrorResponse(error, request.id);
  for (const [name, value] of toHeaders(headers)) reply.header(name, value);
  return reply.code(status).send(body);
}
