import assert from 'node:assert/strict';

export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/**
 * Reads server-sent events as an EventSource does (HTML, 9.2.6), until `enough` is true after an event, and then leaves.
 */
export async function readEvents(
  url: string,
  headers: Record<string, string>,
  enough: (events: readonly ServerEvent[]) => boolean | Promise<boolean>,
) {
  const {
    status,
    body,
    headers: own,
  } = await fetch(url, { headers: { accept: 'text/event-stream', ...headers } });
  assert.equal(status, 200);
  const events: ServerEvent[] = [];
  let text = '';
  let lastEventId = headers['last-event-id'] ?? '';
  const seen = () => ({ events, lastEventId, contentType: own.get('content-type') });
  for await (const chunk of body?.pipeThrough<string>(new TextDecoderStream()) ?? []) {
    const blocks = (text + chunk).split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = block.split('\n').map((line) => /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? []);
      const valuesOf = (name: string) => fields.flatMap(([, key, value = '']) => (key === name ? value : []));
      lastEventId = valuesOf('id').at(-1) ?? lastEventId;
      const data = valuesOf('data');
      if (data.length === 0) continue;
      events.push({ name: valuesOf('event').at(-1) ?? 'message', data: data.join('\n') });
      if (await enough(events)) return seen();
    }
  }
  return seen();
}
