import type { Slot } from '../../turns/slots.ts';

/** OP_MSG (MongoDB wire protocol): 16 bytes of header, 4 of flags, section kind 0, one BSON document. */
export const HEADER = 16;
export const BODY = 21;
const OP_MSG = 2013;
/** maxMessageSizeBytes of every mongod. */
const LONGEST = 48_000_000;

/** A whole reply: the first `length` bytes of the slot. */
export interface Message {
  readonly slot: Slot;
  readonly length: number;
}

/** The server, or something between, violated the protocol or broke off. The connection is no longer usable. */
export class LaneBroken extends Error {
  override readonly name = 'LaneBroken';
}

/** A message of one document, given as the pieces of its elements (a BSON document without its size and its NUL). */
export function encodeMessage(requestId: number, elements: readonly Uint8Array[]): Buffer {
  const size = elements.reduce((sum, { length }) => sum + length, 5);
  const message = Buffer.allocUnsafe(BODY + size);
  message.writeInt32LE(message.length, 0);
  message.writeInt32LE(requestId, 4);
  message.writeInt32LE(0, 8);
  message.writeInt32LE(OP_MSG, 12);
  message.writeInt32LE(0, 16);
  message[20] = 0;
  message.writeInt32LE(size, BODY);
  let at = BODY + 4;
  for (const piece of elements) {
    message.set(piece, at);
    at += piece.length;
  }
  message[at] = 0;
  return message;
}

/** The length of the message, in bytes. Throws LaneBroken unless it is the one answer to this request. */
export function lengthOfReply(header: Buffer, requestId: number): number {
  const length = header.readInt32LE(0);
  const answersTo = header.readInt32LE(8);
  const operation = header.readInt32LE(12);
  if (operation !== OP_MSG) throw new LaneBroken(`the reply is of operation ${operation}, not OP_MSG`);
  if (answersTo !== requestId)
    throw new LaneBroken(`the reply answers request ${answersTo}, not ${requestId}`);
  if (length < BODY + 5 || length > LONGEST) throw new LaneBroken(`a reply cannot be ${length} bytes long`);
  return length;
}

/** The document of a message. Throws LaneBroken when it has unexpected flags or is not exactly one document. */
export function documentOfMessage(message: Uint8Array): Uint8Array {
  const view = new DataView(message.buffer, message.byteOffset, message.length);
  const flags = view.getUint32(16, true);
  const kind = view.getUint8(20);
  const size = view.getInt32(BODY, true);
  if (flags !== 0 || kind !== 0 || BODY + size !== message.length)
    throw new LaneBroken(
      `the reply is not one document: flags ${flags}, kind ${kind}, ${size} of ${message.length} bytes`,
    );
  return message.subarray(BODY);
}
