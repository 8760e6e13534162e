import { sourcesIn } from './tree.ts';

/** A part of src/ that faults are put into, and the tests that are to notice them: paths from test/, without the suffix. */
interface Part {
  readonly files: readonly string[];
  readonly tests: readonly string[];
}

const named = (names: string) => names.trim().split(/\s+/);

/**
 * What only MongoDB runs is left out: its tests are slow. The tests end in a few seconds, or part of them (see OPTIONS), and
 * need neither MongoDB nor Redis.
 */
export const PARTS: Readonly<Record<string, Part>> = {
  pipeline: {
    files: sourcesIn('pipeline'),
    tests: named(`pipeline/chain pipeline/checkpoints pipeline/compress pipeline/heartbeats pipeline/pieces
      pipeline/pump resources/stream/formats/arrow resources/stream/resume resources/stream/stream`),
  },
  store: {
    files: sourcesIn('store', ['store/mongo']),
    tests: named(`contracts/changes contracts/collection-sqlite contracts/files contracts/records
      contracts/store-sqlite resources/clear rows/transcoder store/bookmark store/interpolate-keys store/keys
      store/readers store/scope-predicate store/sqlite/changes store/sqlite/file store/sqlite/flush
      store/sqlite/load store/sqlite/resources store/sqlite/retention store/sqlite/rows store/tail store/turns`),
  },
  pages: {
    files: sourcesIn('resources/page'),
    tests: named(`resources/bad-input resources/page/pages resources/query/planner resources/token/cursor
      resources/values/values users/users`),
  },
  access: {
    files: sourcesIn('access', ['access/limiter-redis.ts']),
    tests:
      named(`access/access access/admission access/client access/keys access/keys-file access/leaks-changes
      access/limiter access/limiter-server access/token-keys access/tokens access/tokens-forged`),
  },
  changes: {
    files: sourcesIn('resources/changes'),
    tests: named(`access/leaks-changes contracts/changes resources/changes/answer resources/changes/changes
      resources/changes/room resources/changes/several resources/changes/shared resources/changes/since
      resources/changes/start-cursor resources/stream/partitions`),
  },
};

/** Options of `node --test` that make the tests of a file few enough, by its path. */
export const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  'resources/changes/changes': ['--test-name-pattern=sqlite behind uws'],
};
