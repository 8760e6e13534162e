import { createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { BSON, type Document } from '../../../../src/store/values/bson.ts';
import { listening } from '../../ports.ts';

/** A command other than `hello`, and the socket to answer it on. */
export interface Asked {
  readonly command: Document;
  readonly requestId: number;
  readonly socket: Socket;
}

/**
 * Starts a server that answers hello as a mongod does, and leaves every other answer to a test. Resolves with
 * its address.
 */
export async function fakeMongod(t: TestContext, onCommand: (asked: Asked) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined); // tests break off connections
    let pending = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 4 && pending.length >= pending.readInt32LE(0)) {
        const message = pending.subarray(0, pending.readInt32LE(0));
        pending = pending.subarray(message.length);
        const requestId = message.readInt32LE(4);
        const command = BSON.deserialize(message.subarray(21));
        if ('hello' in command) socket.write(opMsg(requestId, { maxWireVersion: 17, ok: 1 }));
        else onCommand({ command, requestId, socket });
      }
    });
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  return `127.0.0.1:${await listening(t, server)}`;
}

/** An OP_MSG with one document that answers a request. */
export function opMsg(responseTo: number, document: Document): Buffer {
  const body = BSON.serialize(document);
  const head = Buffer.alloc(21);
  head.writeInt32LE(21 + body.length, 0);
  head.writeInt32LE(1, 4);
  head.writeInt32LE(responseTo, 8);
  head.writeInt32LE(2013, 12);
  return Buffer.concat([head, body]);
}
