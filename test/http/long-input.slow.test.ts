import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyedServer } from '../support/access/keyed.ts';
import { RawClient } from '../support/engine/raw.ts';
import type { EngineName } from '../support/process/server.ts';

/** What a request may cost the process, the client here included. Milliseconds of CPU, not of the clock on the wall. */
const MOST_MS = 50;
/** The longest value that a head and a URL have room for. */
const LONGEST = { header: 14_500, url: 13_500 };
/** A value that costs more is sent again, because V8 may have compiled or collected in between. */
const TRIES = 3;

/** What a value consists of, in bytes as latin1 text. Each may be what a pattern repeats. */
const FILLERS = {
  header: [' ', '\xa0', '\xe2\x80\xa8', 'a', '"', ',', 'a/b,', ';q=0'],
  url: ['%20', '%E2%80%A8', 'a', '0', '.', 'a,', '%22', '_asc'],
};
/** What comes before and behind. Most patterns go back only when the end does not fit. */
const ENDS: readonly (readonly [start: string, end: string])[] = [
  ['', ''],
  ['a', '!'],
  ['a', '\xe2\x80\xa8x'],
];

const HEADERS = [
  'Accept', 'Accept-Encoding', 'Access-Control-Request-Headers', 'Authorization', 'Cache-Control', 'Connection',
  'Content-Encoding', 'Content-Type', 'Cookie', 'Forwarded', 'Host', 'If-Match', 'If-None-Match', 'If-Range',
  'Last-Event-ID', 'Origin', 'Prefer', 'Range', 'traceparent', 'X-Forwarded-For', 'X-Request-Id', 'X-Unknown',
]; // prettier-ignore

/** A request that a value is put into. */
interface Place {
  readonly where: 'header' | 'url';
  readonly text: (value: string) => string;
}

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`no header, parameter or path at its longest holds the engine ${engine}`, async (t) => {
    const rows = Array.from({ length: 50 }, (_, n) => ({ _id: n, status: `s${n % 3}`, price: n }));
    const server = await keyedServer(
      t,
      'sqlite',
      [{ name: 'reader' }],
      [{ name: 'orders', rows, indexes: [['status', 'price']] }],
      { CORS_ORIGIN: '*', TRUSTED_PROXIES: 'loopback', RATE_LIMIT: 'off', HTTP_ENGINE: engine },
    );
    const port = Number(new URL(server.url).port);
    const cost = async (request: string): Promise<number> => {
      const client = await RawClient.connect(t, port);
      const before = process.cpuUsage();
      await client.send(request).until((came) => came.includes('\r\n\r\n') || client.closed);
      const { user } = process.cpuUsage(before);
      client.socket.destroy();
      return user / 1000;
    };
    const slow: string[] = [];
    // Parameters are read above the engines.
    const places = [...headers(), ...(engine === 'uws' ? await parameters(server) : [])];
    for (const { where, text } of places)
      for (const filler of FILLERS[where])
        for (const [start, end] of ENDS) {
          const ending = where === 'url' ? encodeURIComponent(Buffer.from(end, 'latin1').toString()) : end;
          const value = start + filler.repeat(Math.floor(LONGEST[where] / filler.length)) + ending;
          let least = Infinity;
          for (let i = 0; i < TRIES && least > MOST_MS; i++) least = Math.min(least, await cost(text(value)));
          if (least > MOST_MS) slow.push(`${least} ms: ${text(`${start}${filler}...${end}`)}`);
        }
    assert.deepEqual(slow, []);
  });

const KEY = 'Authorization: Bearer secret-of-reader';

function request(method: string, target: string, ...lines: string[]): string {
  const length = method.startsWith('P') ? ['Content-Length: 0'] : [];
  return [`${method} ${target} HTTP/1.1`, ...lines, ...length, '', ''].join('\r\n');
}

/** Every header, beside a key where it is not the key itself. */
function headers(): Place[] {
  const requests = [
    ['GET', '/items/stream?limit=1'],
    ['OPTIONS', '/items'],
    ['PATCH', '/api/users/ada'],
  ] as const;
  return requests.flatMap(([method, target]) =>
    HEADERS.map((name) => ({
      where: 'header' as const,
      text: (value: string) => {
        const others = [
          ...(name === 'Host' ? [] : ['Host: localhost']),
          ...(name === 'Authorization' ? [] : [KEY]),
        ];
        return request(method, target, ...others, `${name}: ${value}`);
      },
    })),
  );
}

/** Every parameter of the OpenAPI document in every GET, and one that no route has. */
async function parameters(server: { as(name: string, path: string): Promise<Response> }): Promise<Place[]> {
  const { paths } = (await (await server.as('reader', '/openapi.json')).json()) as {
    paths: Record<string, { get?: { parameters?: { name: string; in: string }[] } }>;
  };
  return Object.entries(paths).flatMap(([path, { get }]) => {
    if (!get) return [];
    const whole = path.replaceAll(/\{\w+\}/g, 'x');
    const inQuery =
      (name: string): Place['text'] =>
      (value) =>
        request('GET', `${whole}?${name}=${value}`, 'Host: localhost', KEY);
    const places = (get.parameters ?? []).flatMap(({ name, in: where }) => {
      if (where === 'query') return [inQuery(name)];
      if (where !== 'path') return [];
      return [(value: string) => request('GET', path.replace(`{${name}}`, value), 'Host: localhost', KEY)];
    });
    const others = [
      inQuery('status'),
      (value: string) => request('GET', `${whole}?${value}`, 'Host: localhost', KEY),
    ];
    return [...places, ...others].map((text) => ({ where: 'url' as const, text }));
  });
}
