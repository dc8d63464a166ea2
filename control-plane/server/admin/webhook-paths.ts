// The OpenAPI description of the webhook, which webhook-route.ts serves beside the router.

const signature = (name: string, description: string) => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
});
const refused = { $ref: '#/components/responses/Problem' };

/** OpenAPI path items. */
export const webhookPaths = {
  '/webhooks': {
    post: {
      operationId: 'postWebhooks',
      tags: ['webhooks'],
      summary: 'Poll for a new revision, announced by a Git host',
      description: 'The body is what the Git host sends; its signature replaces a token.',
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
