import { setTimeout as pause } from 'node:timers/promises';
import type { ReplicaWorld } from './replica-world.ts';

const DOWN_MS = 4_000;

/** What goes wrong, in turn. Each is over when it resolves. */
export const INCIDENTS: Readonly<Record<string, (world: ReplicaWorld) => Promise<void>>> = {
  'the primary steps down': stepDown,
  'the primary is killed': killPrimary,
  'a server is killed': async (world) => {
    await world.servers[0]?.end('SIGKILL');
    await pause(DOWN_MS / 4);
    await world.start(0);
  },
  'the primary hangs': async ({ set }) => {
    const primary = await set.primary();
    primary.pause();
    await pause(DOWN_MS);
    primary.resume();
  },
  'a secondary is killed': async ({ set }) => {
    const primary = await set.primary();
    const secondary = set.members.find((member) => member !== primary);
    await secondary?.kill();
    await pause(DOWN_MS);
    await secondary?.start();
  },
  'the key of a part is taken away': (world) => world.takeKeyAway(),
};

/** Lets another member become the primary. */
export async function stepDown({ set }: Pick<ReplicaWorld, 'set'>): Promise<void> {
  const primary = await set.primary();
  await primary.admin(
    (client) =>
      client
        .db('admin')
        .command({ replSetStepDown: 5, force: true })
        .catch(() => undefined), // it closes the connection
  );
}

export async function killPrimary({ set }: Pick<ReplicaWorld, 'set'>): Promise<void> {
  const primary = await set.primary();
  await primary.kill();
  await pause(DOWN_MS);
  await primary.start();
}
