import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { BSON, type Document } from '../../../../src/store/values/bson.ts';
import { listening } from '../../ports.ts';

/** A proxy in front of a mongod that changes what passes. */
export interface WireProxy {
  /** A direct connection through the proxy, with the database of the URI. */
  readonly uri: string;
  /** Changes a command before the mongod sees it. */
  onCommand: (command: Document) => void;
  /** Changes a reply before the client sees it. */
  onReply: (reply: Document) => void;
  /** Ends all connections and refuses others. */
  stop(): void;
  /** Accepts connections again. */
  start(): void;
}

/** Where the document of a message begins, by its opcode: OP_REPLY and OP_MSG. Others pass unchanged. */
const DOCUMENT_AT: ReadonlyMap<number, number> = new Map([
  [1, 36],
  [2013, 21],
]);

/** Starts a proxy in front of the mongod of a URI. */
export async function startWireProxy(t: TestContext, to: string): Promise<WireProxy> {
  const { hostname, port, pathname } = new URL(to);
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname);
    const close = () => {
      client.destroy();
      server.destroy();
      sockets.delete(client);
    };
    sockets.add(client);
    for (const socket of [client, server]) socket.on('error', close).on('close', close);
    passMessages(client, server, (command) => made.onCommand(command));
    passMessages(server, client, (reply) => made.onReply(reply));
  });
  const own = await listening(t, proxy);
  const stop = () => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  };
  t.after(stop);
  const made: WireProxy = {
    uri: `mongodb://127.0.0.1:${own}${pathname}?directConnection=true&serverSelectionTimeoutMS=1000`,
    onCommand: () => undefined,
    onReply: () => undefined,
    stop,
    start: () => void proxy.listen(own, '127.0.0.1'),
  };
  return made;
}

function passMessages(from: Socket, to: Socket, change: (document: Document) => void): void {
  let pending = Buffer.alloc(0);
  from.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 4 && pending.length >= pending.readInt32LE(0)) {
      const message = pending.subarray(0, pending.readInt32LE(0));
      pending = pending.subarray(message.length);
      to.write(changed(message, change));
    }
  });
}

function changed(message: Buffer, change: (document: Document) => void): Buffer {
  const at = DOCUMENT_AT.get(message.readInt32LE(12));
  if (at === undefined) return message;
  const end = at + message.readInt32LE(at);
  const document = BSON.deserialize(message.subarray(at, end), {
    promoteValues: false,
    promoteLongs: false,
    bsonRegExp: true,
  });
  const before = BSON.serialize(document);
  change(document);
  const after = BSON.serialize(document);
  if (Buffer.compare(before, after) === 0) return message;
  const whole = Buffer.concat([message.subarray(0, at), after, message.subarray(end)]);
  whole.writeInt32LE(whole.length, 0);
  return whole;
}
