/**
 * A server whose leases are short, so that tests need not wait long for the work of one that was killed. Its settings are its
 * environment. It writes the line `URL` when it listens.
 */
import { pino } from 'pino';
import { startServer } from '../../../../src/server/main.ts';
import { readConfig } from '../../../../src/settings/config.ts';

const LEASE_MS = 2_000;

const server = await startServer(readConfig(process.env), pino({ level: 'error' }, pino.destination(2)), {
  leaseMs: LEASE_MS,
});
process.stdout.write(`${server.url}\n`);
process.stdin.resume().once('end', () => process.exit(1)); // who started it has ended
process.once('SIGTERM', () => void server.close().then(() => process.exit(0)));
