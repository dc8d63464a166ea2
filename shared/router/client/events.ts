// Reads server-sent events as they arrive, with the JSON of each as its value. It runs in a browser page as well.

/** Ends with the stream, and throws where that breaks off; who stops reading closes it. Calls `release` at the end. */
export async function* readEvents(
  { body }: Response,
  release: () => void,
): AsyncGenerator<unknown, void, undefined> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let line = '';
    let data: string[] = [];
    while (true) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done || value === undefined) return;
      const [first = '', ...more] = value.split('\n');
      line += first;
      for (const next of more) {
        const text = line.endsWith('\r') ? line.slice(0, -1) : line;
        line = next;
        if (text.startsWith('data:')) data.push(text.slice(5));
        if (text !== '' || data.length === 0) continue;
        yield JSON.parse(data.join('\n'));
        data = [];
      }
    }
  } finally {
    release();
    // A stream that has failed cannot be cancelled as well.
    await reader?.cancel().catch(() => {});
  }
}
