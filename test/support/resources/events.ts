import { get } from 'node:http';

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
): Promise<{ events: ServerEvent[]; lastEventId: string; contentType: string | undefined }> {
  const events: ServerEvent[] = [];
  let [text, data, name, id, lastEventId] = ['', [] as string[], '', headers['last-event-id'] ?? '', ''];
  const field = (line: string) => {
    if (line !== '') {
      const [, key = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
      if (key === 'data') data.push(value);
      if (key === 'event') name = value;
      if (key === 'id') id = value;
      return false;
    }
    lastEventId = id;
    const isEvent = data.length > 0;
    if (isEvent) events.push({ name: name || 'message', data: data.join('\n') });
    [data, name] = [[], ''];
    return isEvent;
  };
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, headers: { accept: 'text/event-stream', ...headers } });
    request.on('error', reject).on('response', (message) => {
      if (message.statusCode !== 200) {
        reject(new Error(`status ${message.statusCode}`));
        return;
      }
      const done = () => resolve({ events, lastEventId, contentType: message.headers['content-type'] });
      message.on('error', () => undefined).on('close', done);
      const take = async () => {
        for await (const chunk of message as AsyncIterable<Buffer>) {
          text += chunk.toString('latin1');
          const lines = text.split('\n');
          text = lines.pop() ?? '';
          for (const line of lines)
            if (field(Buffer.from(line, 'latin1').toString()) && (await enough(events))) return;
        }
      };
      take().then(() => message.destroy(), reject);
    });
  });
}
