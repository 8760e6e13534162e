import { arch, platform } from 'node:os';
import { elementsOf } from './command.ts';
import { Connection, type ConnectOptions } from './connection.ts';
import { readDocument } from './answer.ts';
import { LaneBroken } from './message.ts';
import type { Run, Scram } from './scram.ts';
import type { Slots } from '../../slots.ts';

/** MongoDB 6.0. */
const OLDEST_WIRE_VERSION = 17;

/** The limit when the URI sets none. A lane can have one because it falls back on the driver. */
const CONNECT_TIMEOUT_MS = 2_000;

export interface OpenOptions {
  readonly slots: Slots;
  readonly connect: ConnectOptions;
  /** Null: the URI names no user. */
  readonly scram: Scram | null;
  readonly applicationName: string;
  /** How long a server may be silent, and how long an idle connection is kept. Milliseconds. */
  readonly silenceMs: number;
}

/**
 * Opens a connection, says hello and authenticates, within connectTimeoutMS in total. Rejects with LaneBroken. Calls
 * `onEnd` when the connection is closed, whether it opened or not.
 */
export async function openConnection(
  address: string,
  { slots, connect, scram, applicationName, silenceMs }: OpenOptions,
  onEnd: () => void,
): Promise<Connection> {
  const connection = new Connection(address, connect, slots, { silenceMs, onEnd });
  const connectTimeoutMS = connect.connectTimeoutMS > 0 ? connect.connectTimeoutMS : CONNECT_TIMEOUT_MS;
  const tooLong = () =>
    connection.end(new LaneBroken(`${address} did not greet within ${connectTimeoutMS} ms`));
  const timer = setTimeout(tooLong, connectTimeoutMS);
  const run: Run = async (command) => readDocument(await connection.request([elementsOf(command)]));
  try {
    const client = {
      // At most 128 bytes. It distinguishes the lane from the driver in the server's log and profile.
      application: { name: `${applicationName.slice(0, 100)} data lane` },
      driver: { name: 'sluice', version: '1' },
      os: { type: platform(), architecture: arch() },
      platform: `Node.js ${process.version}`,
    };
    const hello = await run({ hello: 1, client, ...scram?.helloQuestion, $db: 'admin' });
    if (!(Number(hello.maxWireVersion) >= OLDEST_WIRE_VERSION))
      throw new LaneBroken(`${address} speaks wire version ${String(hello.maxWireVersion)}`);
    await scram?.authenticate(run, hello.saslSupportedMechs);
    return connection;
  } catch (error) {
    const broken =
      error instanceof LaneBroken ? error : new LaneBroken(`${address}: ${String(error)}`, { cause: error });
    connection.end(broken);
    throw broken;
  } finally {
    clearTimeout(timer);
  }
}
