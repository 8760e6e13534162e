import { sourcesIn } from './tree.ts';

/** Parts of src/ that faults are put into, with their files. What only MongoDB runs is left out: its tests are slow. */
export const PARTS: Readonly<Record<string, readonly string[]>> = {
  stream: sourcesIn('stream'),
  store: sourcesIn('store', ['store/mongo']),
  pages: sourcesIn('pages'),
  access: sourcesIn('access', ['access/limiter-redis.ts']),
  changes: sourcesIn('changes'),
};

/** The tests that are to notice them: those that end in a few seconds, or part of them (see OPTIONS), and need neither MongoDB nor Redis. */
export const TESTS: readonly string[] = `
  access-file answers api-keys arrow bad-input between bookmark chain change-feed changes changes-from changes-shared
  changes-since checkpoints clear client compress config cursor feed-end feed-run files filtered-rows heartbeats keys lasting leaks-changes
  leaks-changes-forms limiter limiter-admit page-queries pages partitions pieces pump resource-planner resource-values resources-sqlite
  same-but-hidden sqlite sqlite-changes sqlite-file sqlite-flush sqlite-load sqlite-resources
  sqlite-retention sqlite-rows stream stream-resume tail token-keys tokens tokens-forged transcoder turns users users-store
  value-keys watch
`
  .trim()
  .split(/\s+/);

/** Options of `node --test` that make the tests of a file few enough, by its name. */
export const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  changes: ['--test-name-pattern=changes on sqlite behind uws'],
};
