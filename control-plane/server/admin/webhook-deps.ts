// The webhook of the settings: calls signed with their secret make the store poll.
import { readFile } from 'node:fs/promises';
import { errorText } from '../../../shared/errors.ts';
import { trimEnd } from '../../../shared/trim-end.ts';
import type { ConfigStore } from '../store/store.ts';
import { verifyWebhook, type WebhookSettings } from '../store/webhook.ts';
import type { WebhookDeps } from './webhook-route.ts';

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
