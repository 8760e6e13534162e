import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { awaited, fileOf, order } from '../../exports/exports.ts';
import { usersAt } from '../../users/users.ts';

/** The requests of the clients of the bundled catalogue, repeated, each with its concurrency. */
const CLIENTS: readonly (readonly [
  atOnce: number,
  client: (url: string, turn: number) => Promise<unknown>,
])[] = [
  [4, (url, turn) => read(`${url}/items?limit=100&sort=price_asc&offset=${(turn * 97) % 50_000}`, 'br', 200)],
  [
    2,
    (url, turn) =>
      read(`${url}/items/d${String(1 + ((turn * 31) % 50_000)).padStart(5, '0')}`, 'identity', 200),
  ],
  [
    2,
    (url, turn) =>
      read(
        `${url}/items/stream?category=Fair${['', '&checkpoints=true', '&format=csv'][turn % 3] ?? ''}`,
        ['br', 'gzip', 'identity'][turn % 3] ?? '',
        200,
      ),
  ],
  [2, leave],
  [2, (url, turn) => read(`${url}/items?limit=${turn}0000&x=1`, 'identity', 400)],
  [2, writeUsers],
  [1, exportOne],
];

async function read(url: string, coding: string, status: number): Promise<void> {
  const response = await fetch(url, { headers: { 'accept-encoding': coding } });
  await response.arrayBuffer();
  assert.equal(response.status, status, url);
}

async function leave(url: string): Promise<void> {
  const gone = new AbortController();
  const response = await fetch(`${url}/items/stream`, { signal: gone.signal });
  await (response.body as ReadableStream<Uint8Array>).getReader().read();
  gone.abort();
}

async function writeUsers(url: string, turn: number): Promise<void> {
  const users = usersAt(url);
  const id = `u${turn % 100}`;
  await users.put(id, { name: `turn ${turn}`, email: 'a@b', metadata: { turn: String(turn) } });
  await users.send('PATCH', `/api/users/${id}`, { body: { metadata: { more: 'x' } } });
  if (turn % 5 === 0) await users.send('DELETE', `/api/users/${id}`);
}

async function exportOne(url: string): Promise<void> {
  const { id } = await order(url, { category: 'Fair', compression: 'gzip' });
  await fileOf(url, await awaited(url, id));
  await fetch(`${url}/exports/${id}`, { method: 'DELETE' });
}

/** Runs all clients against a server until the time is over. Resolves with the number of their turns. */
export async function runClients(url: string, isOver: () => boolean): Promise<number> {
  let turns = 0;
  await Promise.all(
    CLIENTS.flatMap(([atOnce, client]) =>
      Array.from({ length: atOnce }, async () => {
        while (!isOver()) {
          await client(url, turns++);
          await pause(10);
        }
      }),
    ),
  );
  return turns;
}
