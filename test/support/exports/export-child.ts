/**
 * A server for tests that kill it. Reads its settings from the environment, has a lease of LEASE_MS, and
 * writes its URL to standard output.
 */
import { pino } from 'pino';
import { readConfig } from '../../../src/config.ts';
import { startServer } from '../../../src/main.ts';

const { LEASE_MS, ...environment } = process.env;
const server = await startServer(readConfig(environment), pino({ level: 'silent' }), {
  leaseMs: Number(LEASE_MS),
});
process.stdout.write(`${server.url}\n`);
