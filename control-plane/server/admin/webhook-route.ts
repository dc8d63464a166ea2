// `POST /webhooks`: a Git host announces a push. A signature over the bytes of the body replaces the
// token, so this is a route of its own beside the router.
import { readFile } from 'node:fs/promises';
import type {
  FastifyError,
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
} from 'fastify';
import { errorText } from '../../../shared/errors.ts';
import { HttpError, toErrorResponse, toHeaders } from '../../../shared/router/index.ts';
import { trimEnd } from '../../../shared/trim-end.ts';
import type { ConfigStore } from '../store/store.ts';
import { verifyWebhook, type WebhookSettings, type WebhookVerdict } from '../store/webhook.ts';
import type { UnfinishedRequests } from '../unfinished-requests.ts';
import { watchBody } from './held-bodies.ts';

export interface WebhookDeps {
  /** Whether the sender knows the secret. */
  verify(call: {
    readonly body: Uint8Array;
    header(name: string): string | undefined;
  }): Promise<WebhookVerdict>;
  /** Polls for a new revision; never rejects. */
  trigger(): Promise<void>;
  onCall(verdict: WebhookVerdict, address: string): void;
}

/** The webhook of the settings: calls signed with their secret make the store poll. */
export function createWebhook(
  { secret, secretFile }: WebhookSettings,
  store: ConfigStore,
  say: (isAccepted: boolean, text: string) => void,
): WebhookDeps {
  return {
    async verify(call) {
      if (secretFile === undefined) return verifyWebhook(call, secret);
      let text: string;
      try {
        text = await readFile(secretFile, 'utf8');
      } catch (error) {
        const reason = `the webhook secret cannot be read (${errorText(error)})`;
        return { ok: false, reason };
      }
      return verifyWebhook(call, trimEnd(text, '\r\n'));
    },
    trigger: () => store.trigger(),
    onCall(verdict, address) {
      const outcome = verdict.ok ? 'polling the store' : `refused: ${verdict.reason}`;
      say(verdict.ok, `Webhook call from ${address}: ${outcome}`);
    },
  };
}

/** Enough for a push with many commits. */
export const maxBytes = 5 * 1024 * 1024;

/** The answer does not wait for the store: senders give up after some seconds. */
export async function addWebhookRoute(
  instance: FastifyInstance,
  { verify, trigger, onCall }: WebhookDeps,
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
      const verdict = await verify({ body, header: (name) => headerOf(request, name) });
      onCall(verdict, request.ip);
      if (!verdict.ok)
        return refuse(new HttpError(401, { detail: verdict.reason }), request, reply);
      void trigger();
      reply.code(202).header('cache-control', 'no-store');
      return { accepted: true };
    });
  };
  await instance.register(route);
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
