import { Long, type Document, type Timestamp } from '../../values/bson.ts';
import { slotOf } from '../../batch.ts';
import type { Slots } from '../../turns/slots.ts';
import { named } from '../commands.ts';
import type { MongoConnection } from '../connection.ts';
import { isForgotten } from '../errors.ts';
import type { FindWay, When } from '../lane/lane.ts';
import { rowsOf } from '../reply.ts';
import { pointInTimeOf } from '../snapshot.ts';

/** Sends finds through the driver, which works everywhere, and copies their rows into a slot. */
export function driverWay(
  connection: MongoConnection,
  slots: Slots,
  onWarning: (message: string) => void,
): FindWay {
  const run = async (
    find: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    { at, since, identity }: When,
  ): Promise<Document> => {
    const command = named(find, identity);
    const options = { signal, rowsAsBytes: true, ...(at === undefined ? { since } : { snapshot: at }) };
    try {
      return await connection.run(command, options);
    } catch (error) {
      // A point in time is gone only when no member has it. Most often the primary was asked.
      const mayAskOthers = at !== undefined && connection.client.readPreference.mode !== 'primary';
      if (!isForgotten(error) || !mayAskOthers) throw error;
      return connection.run(command, { ...options, readPreference: 'secondaryPreferred' });
    }
  };

  /** Closes a cursor that will not be read again. The server would keep it for 10 minutes. */
  const kill = async (collection: unknown, cursor: bigint, signal: AbortSignal): Promise<void> => {
    const command = { killCursors: collection, cursors: [Long.fromBigInt(cursor)] };
    await connection.run(command, { signal }).catch((error: unknown) => {
      onWarning(`a MongoDB cursor could not be closed and will time out: ${String(error)}`);
    });
  };

  return {
    async find(command, signal, when = {}) {
      const reply = await run(command, signal, when);
      const { rows, id } = rowsOf(reply);
      if (id !== 0n) await kill(command.find ?? command.aggregate, id, signal);
      const { slot, length } = slotOf(slots, rows);
      const time = reply.operationTime as Timestamp | undefined;
      return { slot, start: 0, length, cut: id !== 0n, asOf: time && pointInTimeOf(time) };
    },
  };
}
