import type { Scenario } from './scenario.ts';

/** Editions of all items: the first, the one behind changes, and many readers at once. */
export function editions(): Scenario[] {
  const both = { mongodb: ['sluice'], sqlite: ['sluice'] } as const;
  const group = 'editions';
  return [
    {
      group,
      set: 'default', // each of the others makes a first one, too
      kind: 'editions',
      name: 'edition-first',
      shows: 'the first edition of all items',
      changes: 0,
      on: both,
    },
    ...[1, 1_000].map((changes): Scenario => ({
      group,
      set: changes === 1 ? 'quick' : 'default',
      kind: 'editions',
      name: `edition-${changes}`,
      shows: `the next edition, behind ${changes.toLocaleString('en-US')} scattered ${changes === 1 ? 'change' : 'changes'}`,
      changes,
      on: both,
    })),
    {
      group,
      set: 'quick',
      kind: 'edition-readers',
      name: 'edition-readers',
      shows: '1,000 readers of an edition behind the cache of nginx, against 1,000 streams',
      readers: 1_000,
      scale: 0.05, // a thousand streams of a million items are a quarter of a terabyte
      on: { sqlite: ['sluice'] },
    },
  ];
}
