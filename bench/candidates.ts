import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Program } from './process.ts';

const HERE = import.meta.dirname;

/**
 * - `own`: sluice itself.
 * - `limit`: a standard of comparison, one part of the path alone.
 * - `peer`: another server with the same answers, as its authors would write it.
 */
export type Role = 'own' | 'limit' | 'peer';

interface Candidate {
  readonly role: Role;
  readonly says: string;
  readonly file: string;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Receives the address of sluice, whose answers it repeats. */
  readonly upstream?: true;
}

/** The variables of glibc that the image sets. Other variables of the image are no settings of the server. */
const OF_IMAGE = Object.fromEntries(
  [...readFileSync(join(HERE, '../Dockerfile'), 'utf8').matchAll(/\b(MALLOC_\w+)=(\d+)/g)].map(
    ([, name = '', value = '']) => [name, value],
  ),
);
/**
 * Limits on clients are off, which would stop a load that comes from one address, and so is the guard that refuses
 * requests to a server that is too busy. malloc is set as in the image.
 */
const UNLIMITED = {
  ...OF_IMAGE,
  PORT: '0',
  SAMPLE: 'off',
  LOG_LEVEL: 'info',
  RATE_LIMIT: 'off',
  STREAM_LIMIT: 'off',
  MAX_LOOP_DELAY: '1 h',
  MAX_WAIT: '1 h',
};
/** The rate of the limited candidates, in requests per minute. */
const RATE = 100;

const own = { role: 'own', file: '../dist/process/cli.js', args: ['serve'] } as const;

/** The measured candidates. */
export const CANDIDATES = {
  sluice: { ...own, says: 'this server', environment: UNLIMITED },
  'sluice, limited': {
    ...own,
    says: `with RATE_LIMIT=${RATE}/min`,
    environment: { ...UNLIMITED, RATE_LIMIT: `${RATE}/min` },
  },
  'sluice, two workers': { ...own, says: 'with WORKERS=2', environment: { ...UNLIMITED, WORKERS: '2' } },
  'sluice, node:http': {
    ...own,
    says: 'with HTTP_ENGINE=node',
    environment: { ...UNLIMITED, HTTP_ENGINE: 'node' },
  },
  'bare chain': { role: 'limit', file: 'limits/chain.ts', says: 'the batches, thrown away' },
  'socket drain': { role: 'limit', file: 'limits/drain.ts', says: "mongod's replies, thrown away" },
  'bare statement': { role: 'limit', file: 'limits/statement.ts', says: "SQLite's own loop" },
  'bare uWS': {
    role: 'limit',
    file: 'limits/uws.ts',
    says: 'the same bytes out of memory',
    upstream: true,
  },
  'bare inserts': {
    role: 'limit',
    file: 'limits/inserts.ts',
    says: 'SQLite: rows in order of id, without indexes',
  },
  'bare insertMany': { role: 'limit', file: 'limits/insert-many.ts', says: 'the driver, indexes last' },
  fastify: { role: 'peer', file: 'peers/fastify.ts', says: 'batches of 1,000, fast-json-stringify' },
  'fastify + compress': {
    role: 'peer',
    file: 'peers/fastify.ts',
    says: '@fastify/compress as it comes',
  },
  'fastify + compress, quality 1': {
    role: 'peer',
    file: 'peers/fastify.ts',
    says: "@fastify/compress with sluice's quality",
    environment: { COMPRESS_QUALITY: '1' },
  },
  'fastify, limited': {
    role: 'peer',
    file: 'peers/fastify.ts',
    says: '@fastify/rate-limit',
    environment: { RATE_LIMIT: String(RATE) },
  },
  'fastify + watch': {
    role: 'peer',
    file: 'peers/fastify.ts',
    says: "the driver's change stream with updateLookup, a line each",
  },
  'fastify raw': {
    role: 'peer',
    file: 'peers/fastify-raw.ts',
    says: 'raw: true and a transcoder in JavaScript',
  },
  'fastify cursor.stream()': {
    role: 'peer',
    file: 'peers/fastify-cursor.ts',
    says: 'the way of most guides',
  },
  'node:http': { role: 'peer', file: 'peers/node-http.ts', says: 'JSON.stringify, waiting for drain' },
  express: { role: 'peer', file: 'peers/express.ts', says: 'toArray' },
} as const satisfies Readonly<Record<string, Candidate>>;

export type CandidateName = keyof typeof CANDIDATES;

/** The program of a candidate on a store. */
export function programOf(
  name: CandidateName,
  store: Readonly<Record<string, string>>,
  upstream: string | null,
): Program {
  const { file, args, environment, upstream: wantsUpstream }: Candidate = CANDIDATES[name];
  return {
    file: join(HERE, file),
    ...(args && { args }),
    environment: { ...store, ...environment, ...(wantsUpstream && { UPSTREAM: upstream ?? '' }) },
  };
}
