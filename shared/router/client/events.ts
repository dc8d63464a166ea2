// Reads server-sent events as they arrive, and parses the JSON of each. It also runs in a browser page.

/** Ends with the stream, and throws if the stream is interrupted; a reader that stops closes it. */
export async function* readEvents({ body }: Response): AsyncGenerator<unknown, void, undefined> {
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
    // A failed stream cannot be cancelled.
    await reader?.cancel().catch(() => {});
  }
}
