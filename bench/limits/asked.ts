import { createInterface } from 'node:readline';
import type { Plan } from '../../src/store/store.ts';

/** The request to a limit that is not a server, as a line of JSON. */
export interface Asked {
  readonly sort: string;
  readonly category?: string;
  /** Default: the items. */
  readonly collection?: string;
}

/** The answer of a limit. `rows` is null for a limit that does not look at what it reads. */
export interface Drained {
  readonly rows: number | null;
  readonly bytes: number;
  readonly seconds: number;
}

/** Answers each line of stdin, one after the other, until stdin ends. */
export async function answerLines(
  drain: (plan: Plan, collection: string) => Promise<Omit<Drained, 'seconds'>> | Omit<Drained, 'seconds'>,
): Promise<void> {
  process.stdout.write(`${JSON.stringify({ msg: 'listening', url: null })}\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line) as Asked;
    const started = performance.now();
    const drained = await drain(planOf(asked), asked.collection ?? 'items');
    const answer: Drained = { ...drained, seconds: (performance.now() - started) / 1000 };
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}

function planOf({ sort, category }: Asked): Plan {
  return {
    sort: sort.startsWith('price') ? 'price' : '_id',
    direction: sort.endsWith('desc') ? -1 : 1,
    ...(category !== undefined && { equals: [{ path: 'category', value: category }] }),
  };
}
