import type { Config } from './config.ts';
import { Admissions } from './http/admit.ts';
import { createClientReader } from './http/client.ts';
import { createAuthenticate } from './http/keys.ts';
import type { Limiter } from './limiter/limiter.ts';
import { createMemoryLimiter } from './limiter/memory.ts';
import type { OverloadGuard } from './limiter/overload.ts';
import type { Policy } from './limiter/policy.ts';
import type { StreamSlots } from './limiter/streams.ts';

interface Log {
  warn(details: object, message: string): void;
  info(details: object, message: string): void;
}

/** Who is let in, as the settings say. `close` ends the connection to Redis, when there is one. */
export async function openAdmissions(
  config: Config,
  slots: StreamSlots,
  guard: OverloadGuard,
  log: Log,
): Promise<{ admissions: Admissions; close: () => Promise<void> }> {
  const limiter = config.rateLimit && (await openLimiter(config, config.rateLimit, log));
  const admissions = new Admissions({
    readClient: createClientReader({
      trusts: config.trustsProxy,
      onWarning: (message) => log.warn({}, message),
    }),
    authenticate: config.apiKeys && createAuthenticate(config.apiKeys),
    rate: config.rateLimit && limiter && { policy: config.rateLimit, limiter },
    slots,
    overload: () => guard.refusal(),
    backlog: guard.backlog,
  });
  return { admissions, close: async () => limiter?.close() };
}

async function openLimiter({ REDIS_URL: url }: Config, policy: Policy, log: Log): Promise<Limiter> {
  if (url === undefined) return createMemoryLimiter(policy);
  const { connectRedisLimiter } = await import('./limiter/redis.ts'); // a client that most servers do without
  return connectRedisLimiter({ url, policy, log });
}
