import { sourcesIn } from './tree.ts';

/** Parts of src/ that faults are put into, with their files. What only MongoDB runs is left out: its tests are slow. */
export const PARTS: Readonly<Record<string, readonly string[]>> = {
  pipeline: sourcesIn('pipeline'),
  store: sourcesIn('store', ['store/mongo']),
  pages: sourcesIn('resources/page'),
  access: sourcesIn('access', ['access/limiter-redis.ts']),
  changes: sourcesIn('resources/changes'),
};

/** The tests that are to notice them: those that end in a few seconds, or part of them (see OPTIONS), and need neither MongoDB nor Redis: paths from test/, without the suffix. */
export const TESTS: readonly string[] = `
  access/admission access/client access/keys access/keys-file access/leaks-changes
  access/leaks-changes-forms access/limiter access/token-keys access/tokens access/tokens-forged
  contracts/changes contracts/collection-sqlite contracts/files contracts/records
  contracts/store-sqlite engine/stall-timer http/answers pipeline/chain pipeline/checkpoints
  pipeline/compress pipeline/heartbeats pipeline/pieces pipeline/pump resources/bad-input
  resources/changes/changes resources/changes/answer resources/changes/end-signals resources/changes/shared
  resources/changes/since resources/changes/start-cursor resources/clear resources/page/pages
  resources/query/planner resources/stream/formats/arrow resources/stream/partitions resources/stream/resume
  resources/stream/stream resources/token/cursor resources/values/values rows/transcoder store/bookmark
  store/interpolate-keys store/keys store/readers store/sqlite/changes store/sqlite/file
  store/sqlite/flush store/sqlite/load store/sqlite/resources store/sqlite/retention store/sqlite/rows
  store/tail store/turns store/scope-predicate users/users web/page/allowed-queries
`
  .trim()
  .split(/\s+/);

/** Options of `node --test` that make the tests of a file few enough, by its path. */
export const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  'resources/changes/changes': ['--test-name-pattern=changes on sqlite behind uws'],
};
