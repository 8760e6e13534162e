import { AppError } from '../errors.ts';
import type { Ending } from '../engine/edge.ts';
import { ClientGoneError, StallError, StoppedError } from '../engine/stall-timer.ts';

/**
 * How an answer ended. `whole`: completely. The others are cut answers. `client`: the client closed the
 * connection. `stalled`: the client took no byte for too long. `store`: the store did not answer. `stop`: the
 * server stopped. `fault`: the server itself failed.
 */
export type End = 'whole' | 'client' | 'stalled' | 'store' | 'stop' | 'fault';

export function endOf(cut: Ending['cut']): End {
  if (cut === null) return 'whole';
  const { reason } = cut;
  if (reason instanceof ClientGoneError) return 'client';
  if (reason instanceof StallError) return 'stalled';
  if (reason instanceof StoppedError) return 'stop';
  return reason instanceof AppError ? 'store' : 'fault';
}
